"""VW's JSON and decision-service logs."""
