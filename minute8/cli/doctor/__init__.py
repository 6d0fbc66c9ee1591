"""`minute8 doctor`: checks a deployment, and says what is wrong and what to do about it.

`inventory.py` lists the parts of a deployment. `examine.py` runs all checks at once. `fix.py` makes repairs. Each other
file checks some of the parts.
"""
