from hpctrain.testing import ClusterConformance


class TestPerlmutter(ClusterConformance):
    cluster = "perlmutter"
    account = "m1234_g"
