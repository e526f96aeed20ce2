"""What others talk to: the gRPC services (KEDA's protocol, insight, health, reflection) and the HTTP side."""
