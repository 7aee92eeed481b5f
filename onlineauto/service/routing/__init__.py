"""Routing of language models: a proxy in OpenAI's format whose loop picks the model of each prompt."""
