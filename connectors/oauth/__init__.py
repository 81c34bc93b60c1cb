"""Signing in to servers: OAuth 2.1 as MCP profiles it, over two requests and several processes.

metadata, tokens: pure. http, discovery, renewal: async. flow, acts, grants, site: the shell.
Why it is ours: docs/decisions/sign-in.md.
"""
