"""Commands of the Makefile: the embedded AWS, the Lambda layer, the demo."""
