"""VW text: the strict reader of native mode, and the writer."""
