"""Diagnosis: walk the path to a server step by step, and say what is wrong and who can fix it.

values.py is what a diagnosis consists of, rules.py (pure) what the specifications ask of a server,
advice.py (pure) what a fault means. walk.py walks, with network.py below MCP and asking.py
above it, over the same sessions and the same guard that everything else uses; record.py times and
bounds each step, text.py writes them down. shell.py starts it, for a stored connector or for a bare
address.
"""
