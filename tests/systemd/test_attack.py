"""Root installs, joins and uninstalls on a machine where an attacker owns the service's user."""

import pytest

from tests.cluster.command import CommandFailed
from tests.cluster.kubeadm import BOOTSTRAP_TOKEN
from tests.cluster.node_view import NodeView
from tests.systemd.member import COMMAND, UNIT, Member

STATE = "/var/lib/fake-kubelet"
FLAGS = "/etc/fake-kubelet/install-flags.env"
UNIT_FILE = "/etc/systemd/system/fake-kubelet.service"
SECRET = "what only root may know"
# Every name that root or the service has ever read or written there; kubelet.conf has tests of its own.
NAMES = (
    *("install-flags.env", "install-flags.env.old", ".install-flags.env.draft", ".install-flags.env.old.draft"),
    *("pki", ".kubelet.conf.draft", ".bootstrap-kubelet.conf.draft", "kubelet-client.key.tmp"),
)
SHAPES = {
    "a link to a file of root's": "ln -s /root/secret {}",
    "a link to a file that root would create": "ln -s /etc/cron.d/x {}",
    "a link to a folder": "ln -s /etc/cron.d {}",
    "a FIFO": "mkfifo {}",
    "a folder": "mkdir -p {}/sub && ln -s /root/secret {}/ca.crt",
}
# What is outside: names, kinds, owners, modes, targets and contents, without what is named after us.
LISTING = (
    "find /etc /root /srv /usr/local /var/spool -name '*fake-kubelet*' -prune "
    "-o -printf '%p %y %u %g %m %l\\n' -type f -exec sha256sum {} + | sort"
)
# A machine as it was after the installation, and how it becomes so again: by files, which is far quicker.
KEPT = "/run/installed.tar"
OURS = "find /etc /srv -mindepth 1 -name '*fake-kubelet*' -prune"
KEEP = f"({OURS} -print; echo {STATE}) | tar --create --absolute-names --file={KEPT} --files-from=-"
RESTORE = (
    f"{OURS} -exec rm -rf {{}} +; rm -rf {STATE}; tar --extract --absolute-names --preserve-permissions --file={KEPT}"
)
WHOLE = LISTING.replace("-name '*fake-kubelet*' -prune -o", "").replace("/var/spool", f"/var/spool {STATE}")
SWAP = f"""
import itertools, os, shutil
def remove(name):
    shutil.rmtree(name) if os.path.isdir(name) and not os.path.islink(name) else os.unlink(name)
def fill(name):
    os.mkdir(name)
    open(name + "/f", "w").close()
shapes = (lambda name: os.symlink("/etc/cron.d", name), fill, lambda name: os.symlink("/root/secret", name))
for name, shape in itertools.cycle(itertools.product(("pki", "kubelet.conf", "install-flags.env"), shapes)):
    name = "{STATE}/" + name  # which may be another folder by now
    for act in (remove, shape):
        try:
            act(name)
        except OSError:  # others work here, too
            pass
"""
EXEC_KUBECONFIG = f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"}}}}]
users:
- name: u
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      interactiveMode: IfAvailable
      command: /bin/sh
      args: [-c, "id -u > {STATE}/uid; env > {STATE}/env; tty > {STATE}/tty"]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


class Victim:
    """The machine, its root, and the attacker there."""

    def __init__(self, machine, control_plane):
        self.machine, self.plane = machine, control_plane
        self._before = ""

    def attack(self, script):
        """Run a script as the service's user, and remember what is outside its directory."""
        who = ("setpriv", f"--reuid={UNIT}", f"--regid={UNIT}", "--clear-groups")
        self.machine.run(*who, "sh", "-ec", f"cd {STATE}; {script}")
        self._before = self.machine.run("sh", "-c", LISTING)

    def plant(self, shape, *names):
        self.attack("\n".join(f"rm -rf {name}; {SHAPES[shape].format(name, name)}" for name in names))

    def root(self, *words, **options):
        return self.machine.run(COMMAND, *words, **options)

    def join(self, *flags):
        """What root is told, be it joined or not."""
        server = self.plane.url.removeprefix("https://")
        words = ("install", "--join", server, "--token", BOOTSTRAP_TOKEN, "--discovery-token-ca-cert-hash")
        try:
            return self.root(*words, self.plane.pin, *flags)
        except CommandFailed as failure:
            return failure.said

    def assert_unharmed(self):
        assert self.machine.run("sh", "-c", LISTING).splitlines() == self._before.splitlines()
        known = self.machine.run("grep", "-rl", SECRET, STATE, "/etc/fake-kubelet", check=False)
        assert known == ""


@pytest.fixture(scope="module")
def installed(fresh):
    """A machine with the service installed, and what is on it."""
    fresh.run(COMMAND, "uninstall", "--purge")
    fresh.run("sh", "-ec", "mkdir -p /etc/cron.d; umask 077; echo 'from root' > /etc/cron.d/root")
    fresh.run("sh", "-ec", f"umask 077; echo '{SECRET}' > /root/secret")
    fresh.run(COMMAND, "install")
    fresh.run("sh", "-ec", KEEP)
    yield fresh, fresh.run("sh", "-c", WHOLE).splitlines()
    fresh.run(COMMAND, "uninstall", "--purge")


@pytest.fixture
def victim(installed, control_plane):
    """A machine with the service installed, whose user somebody else has."""
    machine, whole = installed
    assert machine.run("sh", "-c", WHOLE).splitlines() == whole
    yield Victim(machine, control_plane)
    reload = "systemctl daemon-reload; systemctl reset-failed"
    machine.run("sh", "-ec", f"systemctl stop {UNIT} || true; {RESTORE}; rm -rf /srv/*; {reload}")
    NodeView(control_plane, machine.name).delete_node()


@pytest.mark.parametrize("shape", SHAPES)
def test_installing_leaves_everything_outside_as_it_is(victim, shape):
    victim.plant(shape, *NAMES)
    for label in ("a=b", "a=c"):
        told = victim.root("install", f"--node-labels={label}")
        assert "Traceback" not in told
    assert victim.machine.run("stat", "--format=%U %a", FLAGS, f"{FLAGS}.old").split() == ["root", "600"] * 2
    victim.assert_unharmed()


@pytest.mark.parametrize(
    "script",
    [
        "echo '* * * * * root sh' > install-flags.env; ln -s /etc/cron.d/x install-flags.env.old",
        "ln -s /root/secret install-flags.env; echo mine > install-flags.env.old",
        "ln -s /etc/cron.d pki",
    ],
    ids=["written elsewhere", "copied out", "given away"],
)
def test_no_file_is_written_elsewhere_copied_out_or_given_away(victim, script):
    victim.attack(script)
    victim.root("install", "--node-labels=a=b")
    victim.join("--node-labels=a=c")
    victim.assert_unharmed()


@pytest.mark.parametrize("shape", SHAPES)
def test_uninstalling_leaves_everything_outside_as_it_is(victim, shape):
    victim.plant(shape, *NAMES, "kubelet.conf", "bootstrap-kubelet.conf")
    victim.root("uninstall")
    victim.root("uninstall", "--purge")
    assert not victim.machine.succeeds("ls", "-d", STATE)
    victim.machine.run("mkdir", STATE)  # for the search that follows
    victim.assert_unharmed()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["pki", "bootstrap-kubelet.conf", "kubelet.conf"])
def test_joining_leaves_everything_outside_as_it_is(victim, shape, name):
    victim.plant(shape, name)
    told = victim.join()
    assert "Traceback" not in told
    victim.machine.run("systemctl", "stop", UNIT)
    victim.assert_unharmed()


def test_hard_links_lead_nowhere_either(victim):
    # The kernel's protected_hardlinks may be off; root makes the links here, whatever it is.
    names = (*NAMES, "kubelet.conf", "bootstrap-kubelet.conf")
    victim.machine.run("sh", "-ec", f"for n in {' '.join(names)}; do ln /etc/shadow {STATE}/$n; done")
    victim.attack("true")
    victim.join("--node-labels=a=b")
    victim.machine.run("systemctl", "stop", UNIT)
    victim.root("install", "--node-labels=a=c", "--dry-run")
    victim.root("uninstall", "--purge")
    victim.machine.run("mkdir", STATE)
    victim.assert_unharmed()


def test_a_link_in_a_credentials_place_does_not_keep_the_machine_from_joining(victim):
    victim.attack("ln -s /etc/shadow kubelet.conf; ln -s /etc/cron.d/x bootstrap-kubelet.conf")
    victim.join()
    Member(victim.machine, victim.plane).wait_until_ready()
    victim.assert_unharmed()


def test_a_fifo_in_a_credentials_place_is_one_line(victim):
    victim.attack("mkfifo kubelet.conf")
    assert f"cannot read {STATE}/kubelet.conf: it is no regular file" in victim.join()
    victim.assert_unharmed()


def test_a_program_in_a_kubeconfig_gets_nothing_of_roots(victim):
    victim.attack(f"cat > kubelet.conf <<'END'\n{EXEC_KUBECONFIG}\nEND\n")
    victim.join()
    victim.machine.run("systemctl", "stop", UNIT)
    uid = victim.machine.run("id", "-u", UNIT)
    found = victim.machine.run("sh", "-c", f"cd {STATE}; cat uid tty 2>/dev/null || true")
    assert found in {"", f"{uid}not a tty\n"}
    victim.assert_unharmed()


def test_a_start_of_the_service_gives_nothing_away(victim):
    for script in ("ln -s /etc/cron.d pki", "rm pki; ln -s /root/secret pki", "rm pki; mkfifo pki"):
        victim.attack(script)
        victim.machine.run("systemctl", "start", "--no-block", UNIT)
        victim.machine.run("systemctl", "stop", UNIT)
        victim.assert_unharmed()


def test_what_the_user_writes_never_becomes_the_services_environment(victim):
    victim.attack("echo PYTHONSTARTUP=/evil KUBELET_KUBEADM_ARGS=--node-labels=evil=1 > install-flags.env")
    victim.root("install")
    shown = victim.machine.run("systemctl", "show", "--property=EnvironmentFiles", UNIT)
    assert STATE not in shown
    assert not victim.machine.succeeds("ls", FLAGS)
    victim.assert_unharmed()


def test_names_that_change_while_root_works_lead_nowhere(victim):
    # Started is who was executed: root does not wait for a service that cannot work.
    victim.machine.write(f"{UNIT_FILE}.d/test.conf", "[Service]\nType=exec\n")
    victim.attack("true")
    victim.machine.run(
        *("systemd-run", "--quiet", "--collect", "--unit=swap", f"--uid={UNIT}"),
        *("python3", "-c", SWAP),
    )
    try:
        for step in range(2):
            victim.join("--discovery-timeout=1s")
            victim.root("install", f"--node-labels=a=b{step}")
            victim.root("uninstall", "--purge", check=False)
            victim.machine.run("systemctl", "start", "--no-block", UNIT, check=False)
    finally:
        victim.machine.run("systemctl", "stop", "swap")
    victim.machine.run("sh", "-c", f"mkdir -p {STATE}")
    victim.assert_unharmed()


def test_a_purge_of_a_linked_directory_is_one_line_and_leaves_what_is_there(victim):
    victim.machine.run("sh", "-c", f"rmdir {STATE}; mkdir -p /srv/data; echo mine > /srv/data/file")
    victim.machine.run("ln", "-s", "/srv/data", STATE)
    told = victim.root("uninstall", "--purge").splitlines()
    assert f"removed {STATE}, which is a link; kept what is in /srv/data" in told
    assert victim.machine.run("cat", "/srv/data/file") == "mine\n"


def test_flags_of_an_earlier_version_are_asked_for_once_more(victim):
    victim.attack("echo 'KUBELET_KUBEADM_ARGS=\"--node-labels=a=b\"' > install-flags.env")
    old = f"sed -i 's,{FLAGS},{STATE}/install-flags.env,' {UNIT_FILE}"
    victim.machine.run("sh", "-c", f"{old}; cp {UNIT_FILE} /srv/unit")
    with pytest.raises(CommandFailed, match=f"the flags in {STATE}/install-flags.env would be lost"):
        victim.root("install")
    victim.machine.run("cmp", UNIT_FILE, "/srv/unit")
    told = victim.root("install", "--node-labels=a=b")
    assert f"{STATE}/install-flags.env is no longer read: the flags are in {FLAGS} now" in told
    assert victim.machine.run("cat", FLAGS) == 'KUBELET_KUBEADM_ARGS="--node-labels=a=b"\n'


@pytest.mark.parametrize("place", ["/etc/fake-kubelet", "/opt/fake-kubelet/bin"])
def test_what_root_relies_on_must_not_be_the_users(victim, place):
    victim.machine.run("chown", UNIT, place)
    try:
        with pytest.raises(CommandFailed, match=f"the user {UNIT} may change {place}, which root relies on"):
            victim.root("install")
    finally:
        victim.machine.run("chown", "root", place)
