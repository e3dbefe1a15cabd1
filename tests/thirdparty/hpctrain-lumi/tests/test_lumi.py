from hpctrain.testing import ClusterConformance


class TestLumi(ClusterConformance):
    cluster = "lumi"
    account = "project_465000001"
