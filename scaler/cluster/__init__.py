"""Kubernetes: the ScaledObject, its scale target and pods, leases and events."""
