"""Policies and rivals on the same traffic: the plant in simulated time, traces, scores and reports."""
