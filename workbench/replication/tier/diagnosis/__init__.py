"""What a registry, logs and reports of nodes tell: who is behind, who parted, who keeps what others need."""
