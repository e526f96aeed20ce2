"""Room on nodes for replicas to come: CapacityBuffers, or placeholder pods that real pods displace."""
