"""The assistant's own room, without any platform: a page in the browser and a conversation in the terminal."""
