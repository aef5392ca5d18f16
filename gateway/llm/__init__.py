"""Asking a language model: the words for it, the client, the helper process behind it, and what histories need."""
