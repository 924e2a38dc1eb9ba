# SPDX-License-Identifier: Apache-2.0
"""Keeps what a run computes on this machine: losses and weights that no GPU
computed are not sent to W&B, MLflow, Neptune, ClearML, SwanLab or a model hub,
unless `memsim run` has --write-through. Downloads work as ever. The variables
that keep most of these offline are set by memsim/run/spawn.c."""
import ctypes
import functools
import re
import sys

_REMOTE = re.compile(r"^(https?:|databricks|uc:)")
# The methods of huggingface_hub.HfApi that change something there.
_CHANGES = re.compile(
    r"^(create|update|delete|upload|move|duplicate|merge|edit|comment|change|"
    r"rename|hide|add|pause|restart|resume|request|grant|accept|reject|cancel|"
    r"rerun|run_job|run_uv|super_squash|permanently|preupload|set|"
    r"enable|disable|scale_to_zero)_")


def _say(what):
    ctypes.CDLL("libmemsim.so").memsim_note(
        (f"{what}, because its values are not computed; --write-through lets "
         f"them out").encode())


def _keep_wandb():
    wandb = sys.modules["wandb"]
    init = wandb.init

    @functools.wraps(init)
    def offline(*args, **named):
        if named.get("mode") not in (None, "offline", "disabled", "dryrun"):
            named["mode"] = "offline"
        _say("W&B was kept offline")
        return init(*args, **named)

    wandb.init = offline


def _local(uri):
    """URI, or None for one of another machine: then MLflow has its own."""
    if uri is None or not _REMOTE.match(str(uri)):
        return uri
    _say("MLflow was kept to this machine")
    return None


def _keep_mlflow():
    mlflow = sys.modules["mlflow"]
    set_uri, client = mlflow.set_tracking_uri, mlflow.MlflowClient

    @functools.wraps(set_uri)
    def set_tracking_uri(uri):
        if _local(uri) is not None:
            set_uri(uri)

    init = client.__init__

    @functools.wraps(init)
    def client_init(self, tracking_uri=None, registry_uri=None):
        init(self, _local(tracking_uri), _local(registry_uri))

    mlflow.set_tracking_uri = set_tracking_uri
    client.__init__ = client_init


def _answer(hub, name, named, args):
    """What a caller of HfApi.NAME goes on with."""
    repository = named.get("repo_id") or (args[0] if args else "none/none")
    url = f"{hub.constants.ENDPOINT}/{repository}"
    if name == "create_repo":
        return hub.RepoUrl(url)
    if name == "create_commit" or name.startswith("upload_"):
        return hub.CommitInfo(commit_url=f"{url}/commit/{'0' * 40}",
                              commit_message="memsim", commit_description="",
                              oid="0" * 40)
    return None


def _instead(hub, name):
    def offline(self, *args, **named):
        _say(f"huggingface_hub's {name}() was not carried out")
        answer = _answer(hub, name, named, args)
        if named.get("run_as_future"):
            return self.run_as_future(lambda: answer)
        return answer
    return functools.wraps(getattr(hub.HfApi, name))(offline)


def _keep_hub():
    hub = sys.modules["huggingface_hub.hf_api"]
    for name in [n for n in vars(hub.HfApi) if _CHANGES.match(n)]:
        setattr(hub.HfApi, name, _instead(hub, name))
        if hasattr(hub, name):  # a function that was the method's
            setattr(hub, name, getattr(hub.api, name))


def _keep_other(name):
    _say(f"{name} was kept offline")


_KEEPERS = {"wandb": _keep_wandb, "mlflow": _keep_mlflow,
            "huggingface_hub.hf_api": _keep_hub}


def keep(module):
    """MODULE was imported."""
    _KEEPERS.get(module, lambda: _keep_other(module))()


def start():
    pass
