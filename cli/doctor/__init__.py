"""`minute8 doctor`: checks a deployment, and says what is wrong and what to do about it.

`expected.py` lists the parts of a deployment. Each other file checks some of them; `examine.py` runs all checks at
once.
"""
