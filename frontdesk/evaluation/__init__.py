"""How good a model is at the conversation's decisions: scenarios, put through the real prompt, tools and reading."""
