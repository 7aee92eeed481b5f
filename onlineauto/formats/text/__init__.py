"""VW text, read strictly, and written."""
