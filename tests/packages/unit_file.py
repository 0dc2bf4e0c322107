"""Runs a daemon as its systemd unit says, in a root without systemd: its user, directories, credentials, settings,
and commands. What systemd itself adds (the sandbox, restarts) is not here: tests/integration/install_test.py
rates that."""

import re
import shlex
import shutil

STATE = {"RuntimeDirectory": "/run", "StateDirectory": "/var/lib"}


class UnitFile:
    def __init__(self, root, name):
        self.root, self.name = root, name
        text = (root.folder / "lib/systemd/system" / f"{name}.service").read_text()
        text = re.sub(r"\\\n\s*", " ", text)
        self.settings = [tuple(line.split("=", 1)) for line in text.splitlines()
                         if "=" in line and not line.startswith(("#", "["))]

    def all(self, key):
        return [value for name, value in self.settings if name == key]

    def may_start(self):
        """Whether its conditions hold."""
        return all((self.root.folder / path.lstrip("/")).exists() for path in self.all("ConditionPathExists"))

    def start(self):
        """Prepares it as root, then starts it as its user."""
        root, environment = self.root, {}
        for key, below in STATE.items():
            for name in " ".join(self.all(key)).split():
                folder = root.folder / f"{below}/{name}".lstrip("/")
                folder.mkdir(parents=True, exist_ok=True)
                folder.chmod(0o700)
                root.run("chown", f"{self.name}:{self.name}", f"{below}/{name}")
        credentials = root.folder / "run/credentials" / self.name
        credentials.mkdir(parents=True, exist_ok=True)
        for credential in self.all("LoadCredential"):
            name, path = credential.split(":")
            shutil.copy(root.folder / path.lstrip("/"), credentials / name)
            (credentials / name).chmod(0o400)
        root.run("chown", "-R", f"{self.name}:{self.name}", f"/run/credentials/{self.name}")
        environment["CREDENTIALS_DIRECTORY"] = f"/run/credentials/{self.name}"
        for assignment in self.all("Environment"):
            environment.update([assignment.split("=", 1)])
        for path in self.all("EnvironmentFile"):
            for line in (root.folder / path.lstrip("-/")).read_text().splitlines():
                if line and not line.startswith("#"):
                    environment.update([line.split("=", 1)])
        user = f"{self.name}:{self.name}"

        def words(command):
            return shlex.split(re.sub(r"\$\{(\w+)\}", lambda match: environment[match[1]], command))

        for command in self.all("ExecStartPre"):
            root.run(*words(command), user=user, **environment)
        (command,) = self.all("ExecStart")
        return root.start(*words(command), user=user, **environment)
