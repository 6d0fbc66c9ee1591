"""The test tables of other projects, as facts, and our answer to each."""
