"""Signing in to servers: OAuth 2.1 as MCP profiles it, over two requests and several processes.

metadata, tokens: pure. http, discovery, renewal: async, values in and out. grants, flow: the shell.
"""
