"""The demonstration: a simulated fleet, the real server, and stand-ins for Deployment, KEDA and HPA."""

from scaler.cli.demo.command import demo

__all__ = ["demo"]
