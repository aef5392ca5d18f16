"""The model's Markdown, as each platform shows it, and the cutting of it into messages.

Owns how Markdown is read (one dialect for every medium) and written (Telegram HTML, Slack's mrkdwn, plain text, HTML
for the web page). Knows no platform's limits, calls or payloads: who splits brings the measure along.
"""

from mediums.markup.mrkdwn import escaped, mrkdwn
from mediums.markup.render import plain, telegram_html
from mediums.markup.split import split
from mediums.markup.web import web_html

__all__ = ["escaped", "mrkdwn", "plain", "split", "telegram_html", "web_html"]
