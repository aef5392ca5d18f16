"""The demo: a real gateway in a folder of its own, with made-up figures, people and an outbox that sends nothing."""
