"""Runs a command of headroom in network namespaces where they are permitted.

Usage: permitted.py -- ARGUMENT...           a graph: where they are not permitted, it says so and
                                              waits to be ended, so that the run goes on without it
       permitted.py --of ADDR -- ARGUMENT...  only if the graph at ADDR is there; or says that it is not
"""
