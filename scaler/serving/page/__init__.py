"""The live page: its files, the JSON API behind it, and the event streams that keep it up to date.

The API says what the Insight service says (`scaler.serving.views`). Nothing here runs while nobody looks.
"""

from scaler.serving.page.routes import Page

__all__ = ["Page"]
