"""What a process tells about its work: spans that follow a job through all services, and metrics."""
