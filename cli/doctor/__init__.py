"""`minute8 doctor`: looks at a deployment and says what is wrong with it, and what to do about it.

`expected.py` is what a deployment is made of; each other file looks at one part of it; `examine.py` runs all at once.
"""
