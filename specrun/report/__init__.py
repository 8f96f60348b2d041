"""A result for people and machines: text, Markdown, one HTML page, JSON, JUnit, and two results side by side."""
