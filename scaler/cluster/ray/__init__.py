"""The bridge to KubeRay: RayWorkerGroups, which can be scaled, stand for worker groups, which cannot."""
