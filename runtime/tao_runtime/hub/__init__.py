"""Know before launch whether a model of the Hub can be had, and bring it to disk whole and verified."""
