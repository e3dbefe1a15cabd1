from hpctrain.testing import ClusterConformance


class TestPolaris(ClusterConformance):
    cluster = "polaris"
    account = "datascience"
