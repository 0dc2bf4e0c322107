"""Checks the Kubernetes objects of deploy/kubernetes without a cluster: Kubernetes has every field, each has
the right type, and every name that one object uses exists in another."""

import re

import yaml


class Wrong(Exception):
    """An error in the objects, and its place."""


TEXT, NUMBER, FLAG = str, int, bool
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
QUANTITY = re.compile(r"\d+(\.\d+)?(m|Ki|Mi|Gi|Ti)?")


def quantity(value):
    return QUANTITY.fullmatch(str(value)) is not None


def port(value):
    return isinstance(value, str) or (isinstance(value, int) and 0 < value < 65536)


def texts(value):
    """Whether `value` maps text to text: YAML's true and 1 must be quoted."""
    return isinstance(value, dict) and all(
        isinstance(k, str) and isinstance(v, str) for k, v in value.items())


def value_source(value):
    """Whether `value` is one source of an environment variable: a field of the pod or a key of a secret."""
    try:
        check_shape(value, {"fieldRef": {"fieldPath!": TEXT},
                            "secretKeyRef": {"name!": TEXT, "key!": TEXT, "optional": FLAG}}, "valueFrom")
    except Wrong:
        return False
    return len(value) == 1


METADATA = {"name": TEXT, "labels": texts, "annotations": texts}
SELECTOR = {"matchLabels": texts}
RESOURCES = {"requests": {"cpu": quantity, "memory": quantity, "storage": quantity},
             "limits": {"cpu": quantity, "memory": quantity}}
PROBE = {"httpGet": {"path": TEXT, "port": port}, "periodSeconds": NUMBER, "timeoutSeconds": NUMBER,
         "failureThreshold": NUMBER, "initialDelaySeconds": NUMBER}
# A restart does not help a daemon that takes no work for now, or whose disk is full.
PROBE_PATHS = {"livenessProbe": "/livez", "readinessProbe": "/readyz"}
CONTAINER = {
    "name!": TEXT, "image!": TEXT, "command": [TEXT], "args": [TEXT],
    "env": [{"name!": TEXT, "value": TEXT, "valueFrom": value_source}],
    "ports": [{"name": TEXT, "containerPort!": port}],
    "startupProbe": PROBE, "livenessProbe": PROBE, "readinessProbe": PROBE, "resources": RESOURCES,
    "securityContext!": {"allowPrivilegeEscalation!": FLAG, "readOnlyRootFilesystem!": FLAG,
                         "capabilities!": {"drop": [TEXT]}},
    "volumeMounts": [{"name!": TEXT, "mountPath!": TEXT, "readOnly": FLAG}]}
POD = {
    "metadata!": METADATA,
    "spec!": {
        "automountServiceAccountToken!": FLAG, "terminationGracePeriodSeconds": NUMBER,
        "nodeSelector": texts,
        "affinity": {"podAntiAffinity!": {"requiredDuringSchedulingIgnoredDuringExecution!": [
            {"topologyKey!": TEXT, "labelSelector!": SELECTOR}]}},
        "tolerations": [{"key": TEXT, "operator": TEXT, "effect": TEXT, "value": TEXT}],
        "securityContext!": {"runAsNonRoot!": FLAG, "runAsUser": NUMBER, "runAsGroup": NUMBER,
                             "fsGroup": NUMBER, "seccompProfile!": {"type": TEXT}},
        "initContainers": [CONTAINER], "containers!": [CONTAINER],
        "volumes": [{"name!": TEXT, "secret": {"secretName": TEXT},
                     "emptyDir": {"medium": TEXT, "sizeLimit": quantity}}]}}
PEERS = [{"podSelector": SELECTOR, "namespaceSelector": SELECTOR}]
PORTS = [{"port!": port, "protocol": TEXT}]
# The version and the fields of each kind. "!" ends the name of a required field.
KINDS = {
    "Namespace": ("v1", {}),
    "Service": ("v1", {"spec!": {"selector!": texts, "type": TEXT,
                                 "ports!": [{"name": TEXT, "port!": port, "targetPort": port}]}}),
    "StatefulSet": ("apps/v1", {"spec!": {
        "replicas": NUMBER, "serviceName!": TEXT, "selector!": SELECTOR, "template!": POD,
        "volumeClaimTemplates": [{"metadata!": METADATA, "spec!": {
            "accessModes!": [TEXT], "storageClassName": TEXT, "resources!": RESOURCES}}]}}),
    "DaemonSet": ("apps/v1", {"spec!": {
        "selector!": SELECTOR, "template!": POD,
        "updateStrategy": {"type": TEXT, "rollingUpdate": {"maxUnavailable": port}}}}),
    "Deployment": ("apps/v1", {"spec!": {
        "selector!": SELECTOR, "template!": POD,
        "strategy": {"type": TEXT, "rollingUpdate": {"maxUnavailable": port, "maxSurge": NUMBER}}}}),
    "ScaledObject": ("keda.sh/v1alpha1", {"spec!": {
        "scaleTargetRef!": {"name!": TEXT}, "pollingInterval": NUMBER, "cooldownPeriod": NUMBER,
        "minReplicaCount": NUMBER, "maxReplicaCount!": NUMBER,
        "advanced": {"horizontalPodAutoscalerConfig!": {"behavior!": {
            direction: {"stabilizationWindowSeconds": NUMBER,
                        "policies": [{"type!": TEXT, "value!": NUMBER, "periodSeconds!": NUMBER}]}
            for direction in ("scaleUp", "scaleDown")}}},
        "triggers!": [{"type!": TEXT, "metricType": TEXT, "metadata!": {
            "serverAddress!": TEXT, "query!": TEXT, "threshold!": TEXT, "ignoreNullValues": TEXT}}]}}),
    "NetworkPolicy": ("networking.k8s.io/v1", {"spec!": {
        "podSelector!": SELECTOR, "policyTypes!": [TEXT],
        "ingress": [{"from": PEERS, "ports": PORTS}], "egress": [{"to": PEERS, "ports": PORTS}]}}),
}

RUN_PODS = ("StatefulSet", "DaemonSet", "Deployment")


def check_shape(value, shape, where):
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            raise Wrong(f"{where}: not a mapping")
        fields = {name.rstrip("!"): of for name, of in shape.items()}
        for name in value:
            if name not in fields:
                raise Wrong(f"{where}.{name}: there is no such field; there are {sorted(fields)}")
            check_shape(value[name], fields[name], f"{where}.{name}")
        for name in shape:
            if name.endswith("!") and name[:-1] not in value:
                raise Wrong(f"{where}.{name[:-1]}: missing")
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise Wrong(f"{where}: not a list")
        for i, item in enumerate(value):
            check_shape(item, shape[0], f"{where}[{i}]")
    elif isinstance(shape, type):
        # Python's bool is an int.
        if not isinstance(value, shape) or (shape is int and isinstance(value, bool)):
            raise Wrong(f"{where}: {value!r} is no {shape.__name__}")
    elif not shape(value):
        raise Wrong(f"{where}: {value!r} is no {shape.__name__}")


def load(folder):
    """Every object of the files in the folder's kustomization, by (kind, name), each checked by itself."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    objects = {}
    for name in kustomization["resources"]:
        for document in yaml.safe_load_all((folder / name).read_text()):
            kind = document.get("kind")
            if kind not in KINDS:
                raise Wrong(f"{name}: kind {kind!r} is none of {sorted(KINDS)}")
            version, fields = KINDS[kind]
            if document.get("apiVersion") != version:
                raise Wrong(f"{name}: a {kind} is of {version}, not of {document.get('apiVersion')}")
            check_shape(document, {"apiVersion!": TEXT, "kind!": TEXT, "metadata!": METADATA, **fields},
                        f"{name}:{kind}")
            label = document["metadata"]["name"]
            if not NAME.fullmatch(label) or (kind, label) in objects:
                raise Wrong(f"{name}: {kind} {label!r} is no name, or there twice")
            objects[kind, label] = document
    return kustomization, objects


def pods(objects):
    """(name, pod template) of every object that runs pods."""
    return [(name, o["spec"]["template"]) for (kind, name), o in objects.items()
            if kind in RUN_PODS]


def containers(template):
    return template["spec"].get("initContainers", []) + template["spec"]["containers"]


def scraped(template, prometheus):
    """The names of the jobs under which a Prometheus with that configuration scrapes a pod, one per port
    that its relabelling keeps."""
    config, = yaml.safe_load(prometheus.read_text())["scrape_configs"]
    roles = [sd["role"] for sd in config["kubernetes_sd_configs"]]
    if roles != ["pod"]:
        raise Wrong(f"{prometheus}: not of pods, but {roles}")
    jobs = []
    for c in containers(template):
        for p in c.get("ports", []) or [{}]:
            # https://prometheus.io/docs/prometheus/latest/configuration/configuration/#pod
            labels = {"job": config["job_name"],
                      "__meta_kubernetes_pod_container_port_name": p.get("name", "")}
            for name, value in template["metadata"]["labels"].items():
                labels["__meta_kubernetes_pod_label_" + re.sub("[^a-zA-Z0-9_]", "_", name)] = value
            if _relabelled(labels, config["relabel_configs"]):
                jobs.append(labels["job"])
    return jobs


def _relabelled(labels, rules):
    """Relabels as Prometheus does; False if a rule drops the target."""
    for rule in rules:
        value = ";".join(labels.get(name, "") for name in rule["source_labels"])
        match = re.fullmatch(rule.get("regex", "(.*)"), value)
        action = rule.get("action", "replace")
        if action == "keep":
            if match is None:
                return False
        elif action == "replace":
            if match is not None:
                labels[rule["target_label"]] = re.sub(
                    r"\$(\d)", lambda group: match[int(group[1])], rule.get("replacement", "$1"))
        else:
            raise Wrong(f"a rule of relabelling that is not known here: {action}")
    return True


def check_references(objects):
    """Checks that names used in one object exist in another."""
    labels = [template["metadata"]["labels"] for _, template in pods(objects)]
    ports = {p["name"] for _, template in pods(objects) for c in containers(template)
             for p in c.get("ports", [])}

    def known(selector, where):
        wanted = selector.get("matchLabels", selector)
        if not any(wanted.items() <= of.items() for of in labels):
            raise Wrong(f"{where}: no pod has the labels {wanted}")

    for (kind, name), o in objects.items():
        where = f"{kind} {name}"
        spec = o.get("spec", {})
        if kind in RUN_PODS:
            if not spec["selector"]["matchLabels"].items() <= \
                    spec["template"]["metadata"]["labels"].items():
                raise Wrong(f"{where}: its selector does not match its own pods")
            if kind == "StatefulSet" and ("Service", spec["serviceName"]) not in objects:
                raise Wrong(f"{where}: there is no Service {spec['serviceName']}")
            volumes = {v["name"] for v in spec["template"]["spec"].get("volumes", [])}
            volumes |= {v["metadata"]["name"] for v in spec.get("volumeClaimTemplates", [])}
            for c in containers(spec["template"]):
                for mount in c.get("volumeMounts", []):
                    if mount["name"] not in volumes:
                        raise Wrong(f"{where}: there is no volume {mount['name']}")
                for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                    if probe in c and c[probe]["httpGet"]["port"] not in \
                            {p["name"] for p in c["ports"]}:
                        raise Wrong(f"{where}: {probe} asks a port that is not there")
            for c in spec["template"]["spec"]["containers"]:
                for probe, path in PROBE_PATHS.items():
                    if c.get(probe, {}).get("httpGet", {}).get("path") != path:
                        raise Wrong(f"{where}: {probe} is not there or does not ask {path}")
                start = c.get("startupProbe", c["livenessProbe"])
                if start["httpGet"] != c["livenessProbe"]["httpGet"]:
                    raise Wrong(f"{where}: what is waited for at the start is not what it is watched by")
        elif kind == "Service":
            known(spec["selector"], where)
            for p in spec["ports"]:
                if p["targetPort"] not in ports:
                    raise Wrong(f"{where}: no container has a port {p['targetPort']}")
        elif kind == "ScaledObject":
            if ("Deployment", spec["scaleTargetRef"]["name"]) not in objects:
                raise Wrong(f"{where}: there is no Deployment {spec['scaleTargetRef']['name']}")
        elif kind == "NetworkPolicy":
            known(spec["podSelector"], where)
            for rule in spec.get("ingress", []) + spec.get("egress", []):
                for peer in rule.get("from", []) + rule.get("to", []):
                    if "namespaceSelector" not in peer:
                        known(peer["podSelector"], where)
                for p in rule["ports"]:
                    if isinstance(p["port"], str) and p["port"] not in ports:
                        raise Wrong(f"{where}: no container has a port {p['port']}")
