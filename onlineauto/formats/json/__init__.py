"""Readers of VW's JSON and of decision-service logs."""
