"""Objects: created, read, replaced, deleted, and refused."""

from __future__ import annotations

import pytest

from tests.cluster.api import CSINODES, JSON_PATCH, LEASES, MERGE_PATCH, NAMESPACES, NODES, Api

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def test_a_created_object_gets_what_only_the_server_can_give(api: Api, name: str) -> None:
    made = api.create(NODES, {"metadata": {"name": name, "uid": "mine", "creationTimestamp": None}})
    assert made["kind"] == "Node"
    assert made["apiVersion"] == "v1"
    assert set(made["metadata"]) - {"managedFields"} == {"name", "uid", "resourceVersion", "creationTimestamp"}
    assert made["metadata"]["uid"] != "mine"


def test_an_empty_node_is_written_with_its_obligatory_fields(api: Api, name: str) -> None:
    made = api.create(NODES, {"metadata": {"name": name}})
    assert made["status"] == {
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
        "nodeInfo": dict.fromkeys(
            [
                "machineID",
                "systemUUID",
                "bootID",
                "kernelVersion",
                "osImage",
                "containerRuntimeVersion",
                "kubeletVersion",
                "kubeProxyVersion",
                "operatingSystem",
                "architecture",
            ],
            "",
        ),
    }


def test_a_name_is_given_once(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    answer = api.ask("POST", NODES, {"metadata": {"name": name}})
    assert answer.refusal == (409, "AlreadyExists", f'nodes "{name}" already exists')
    assert answer.json()["details"] == {"name": name, "kind": "nodes"}


def test_a_missing_object_is_not_found(api: Api, name: str) -> None:
    answer = api.ask("GET", f"{LEASES}/{name}")
    assert answer.refusal == (404, "NotFound", f'leases.coordination.k8s.io "{name}" not found')
    assert answer.json()["details"] == {"name": name, "group": "coordination.k8s.io", "kind": "leases"}


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_missing_node_cannot_be_written(api: Api, name: str, method: str) -> None:
    content_type = MERGE_PATCH if method == "PATCH" else "application/json"
    answer = api.ask(method, f"{NODES}/{name}", {"metadata": {"name": name}}, content_type=content_type)
    if method == "DELETE":
        answer = api.ask("DELETE", f"{NODES}/{name}")
    assert answer.refusal == (404, "NotFound", f'nodes "{name}" not found')


def test_an_unknown_resource_is_not_found(api: Api) -> None:
    answer = api.ask("GET", "/api/v1/thingummies")
    assert answer.refusal == (404, "NotFound", "the server could not find the requested resource")


def test_an_unknown_group_has_no_page(api: Api) -> None:
    answer = api.ask("GET", "/apis/thingummies.example.com/v1/things")
    assert (answer.status, answer.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize(("method", "path"), [("PUT", NODES), ("POST", f"{NODES}/some")])
def test_a_verb_that_a_path_lacks_is_not_allowed(api: Api, method: str, path: str) -> None:
    answer = api.ask(method, path, {})
    message = "the server does not allow this method on the requested resource"
    assert answer.refusal == (405, "MethodNotAllowed", message)


def test_names_are_dns_subdomains(api: Api) -> None:
    code, reason, message = api.ask("POST", NODES, {"metadata": {"name": "Not_A_Name"}}).refusal
    assert (code, reason) == (422, "Invalid")
    assert message == (
        'Node "Not_A_Name" is invalid: metadata.name: Invalid value: "Not_A_Name": a lowercase RFC 1123 subdomain must '
        "consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
        "character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    )


def test_an_object_needs_a_name(api: Api) -> None:
    answer = api.ask("POST", NODES, {"metadata": {}})
    required = "metadata.name: Required value: name or generateName is required"
    assert answer.refusal == (422, "Invalid", f'Node "" is invalid: {required}')
    cause = {"reason": "FieldValueRequired", "message": required.partition(": ")[2], "field": "metadata.name"}
    assert answer.json()["details"] == {"kind": "Node", "causes": [cause]}


def test_a_name_can_be_left_to_the_server(api: Api, name: str) -> None:
    made = api.create(LEASES, {"metadata": {"generateName": f"{name}-"}, "spec": {}})
    assert made["metadata"]["name"].removeprefix(f"{name}-").isalnum()
    assert len(made["metadata"]["name"]) == len(name) + 6
    assert made["metadata"]["generateName"] == f"{name}-"


def test_a_new_object_has_no_resource_version(api: Api, name: str) -> None:
    answer = api.ask("POST", NODES, {"metadata": {"name": name, "resourceVersion": "7"}})
    assert answer.refusal == (500, "", "resourceVersion should not be set on objects to be created")


def test_a_namespace_must_exist(api: Api, name: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases"
    answer = api.ask("POST", path, {"metadata": {"name": name}, "spec": {}})
    assert answer.refusal == (404, "NotFound", f'namespaces "{name}" not found')


def test_body_and_path_agree_about_the_namespace(api: Api, name: str) -> None:
    answer = api.ask("POST", LEASES, {"metadata": {"name": name, "namespace": "default"}, "spec": {}})
    message = "the namespace of the provided object does not match the namespace sent on the request"
    assert answer.refusal == (400, "BadRequest", message)


def test_body_and_path_agree_about_the_name(api: Api, name: str) -> None:
    api.create(NODES, {"metadata": {"name": name}})
    answer = api.ask("PUT", f"{NODES}/{name}", {"metadata": {"name": "another"}})
    message = f"the name of the object (another) does not match the name on the URL ({name})"
    assert answer.refusal == (400, "BadRequest", message)


def test_body_and_path_agree_about_the_kind(api: Api, name: str) -> None:
    body = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name}}
    code, reason, message = api.ask("POST", LEASES, body).refusal
    assert (code, reason) == (400, "BadRequest")
    assert message.startswith('Node in version "v1" cannot be handled as a Lease: ')


def test_a_body_that_is_not_json_is_a_bad_request(api: Api) -> None:
    assert api.ask("POST", NODES, b"{").refusal[:2] == (400, "BadRequest")


def test_a_body_in_an_unknown_format_is_refused(api: Api) -> None:
    code, reason, message = api.ask("POST", NODES, b"x", content_type="text/plain").refusal
    assert (code, reason) == (415, "UnsupportedMediaType")
    assert message.startswith("the body of the request was in an unknown format - accepted media types include: ")


def test_json_is_chosen_from_a_list_that_prefers_protobuf(api: Api) -> None:
    answer = api.ask("GET", f"{NAMESPACES}/default", accept="application/vnd.kubernetes.protobuf;q=0,application/json")
    assert answer.json()["kind"] == "Namespace"


def test_an_unknown_representation_is_not_acceptable(api: Api) -> None:
    assert api.ask("GET", NODES, accept="text/plain").refusal[:2] == (406, "NotAcceptable")


def test_a_replacement_for_an_old_version_conflicts(api: Api, name: str) -> None:
    old = api.create(LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": "a"}})
    new = old | {"spec": {"holderIdentity": "b"}}
    assert api.ask("PUT", f"{LEASES}/{name}", new).status == 200
    answer = api.ask("PUT", f"{LEASES}/{name}", new | {"spec": {"holderIdentity": "c"}})
    message = f'Operation cannot be fulfilled on leases.coordination.k8s.io "{name}": {MODIFIED}'
    assert answer.refusal == (409, "Conflict", message)


def test_a_replacement_for_another_uid_conflicts(api: Api, name: str) -> None:
    old = api.create(CSINODES, {"metadata": {"name": name}, "spec": {"drivers": None}})
    body = old | {"metadata": {"name": name, "uid": "another"}}
    code, reason, message = api.ask("PUT", f"{CSINODES}/{name}", body).refusal
    assert (code, reason) == (409, "Conflict")
    uids = f"UID in precondition: another, UID in object meta: {old['metadata']['uid']}"
    assert message.endswith(f"Precondition failed: {uids}")


def test_a_node_is_replaced_without_a_version_too(api: Api, name: str) -> None:
    own = {"podCIDR": "10.9.3.0/24", "podCIDRs": ["10.9.3.0/24"]}  # or a controller gives it one in between
    api.create(NODES, {"metadata": {"name": name}, "spec": own})
    answer = api.ask("PUT", f"{NODES}/{name}", {"metadata": {"name": name, "labels": {"a": "b"}}, "spec": own})
    assert answer.status == 200, answer.json()
    assert answer.json()["metadata"]["labels"] == {"a": "b"}


@pytest.mark.parametrize("path", [LEASES, CSINODES], ids=["lease", "csinode"])
def test_some_resources_insist_on_a_version(api: Api, name: str, path: str) -> None:
    api.create(path, {"metadata": {"name": name}, "spec": {"drivers": []} if path == CSINODES else {}})
    answer = api.ask("PUT", f"{path}/{name}", {"metadata": {"name": name}, "spec": {}})
    code, reason, message = answer.refusal
    assert (code, reason) == (422, "Invalid")
    assert message.endswith("metadata.resourceVersion: Invalid value: 0: must be specified for an update")


def test_an_update_without_a_change_changes_nothing(api: Api, name: str) -> None:
    old = api.create(LEASES, {"metadata": {"name": name}, "spec": {"holderIdentity": "a"}})
    assert api.ask("PUT", f"{LEASES}/{name}", old).json() == old
    patched = api.ask("PATCH", f"{LEASES}/{name}", {"spec": {"holderIdentity": "a"}}, content_type=MERGE_PATCH)
    assert patched.json()["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]


def test_a_deletion_names_what_is_gone(api: Api, name: str) -> None:
    old = api.create(LEASES, {"metadata": {"name": name}, "spec": {}})
    answer = api.ask("DELETE", f"{LEASES}/{name}")
    gone = {"name": name, "group": "coordination.k8s.io", "kind": "leases", "uid": old["metadata"]["uid"]}
    assert (answer.status, answer.json()["status"], answer.json()["details"]) == (200, "Success", gone)
    assert api.ask("GET", f"{LEASES}/{name}").status == 404


def test_a_deletion_can_insist_on_a_uid(api: Api, name: str) -> None:
    old = api.create(NODES, {"metadata": {"name": name}})
    uid = old["metadata"]["uid"]
    answer = api.ask("DELETE", f"{NODES}/{name}", {"preconditions": {"uid": "another"}})
    message = (
        f'Operation cannot be fulfilled on Node "{name}": the UID in the precondition (another) does not match the UID '
        f"in record ({uid}). The object might have been deleted and then recreated"
    )
    assert answer.refusal == (409, "Conflict", message)
    assert api.ask("DELETE", f"{NODES}/{name}", {"preconditions": {"uid": uid}}).status == 200


def test_a_deletion_can_insist_on_a_version(api: Api, name: str) -> None:
    api.create(LEASES, {"metadata": {"name": name}, "spec": {}})
    answer = api.ask("DELETE", f"{LEASES}/{name}", {"preconditions": {"resourceVersion": "1"}})
    assert answer.refusal[:2] == (409, "Conflict")


def test_an_object_with_a_finalizer_waits_for_it(api: Api, name: str) -> None:
    api.create(LEASES, {"metadata": {"name": name, "finalizers": ["example.com/wait"]}, "spec": {}})
    deleted = api.ask("DELETE", f"{LEASES}/{name}")
    assert deleted.json()["metadata"]["deletionTimestamp"]
    assert deleted.json()["metadata"]["deletionGracePeriodSeconds"] == 0
    assert api.ask("GET", f"{LEASES}/{name}").status == 200
    released = [{"op": "remove", "path": "/metadata/finalizers"}]
    assert api.ask("PATCH", f"{LEASES}/{name}", released, content_type=JSON_PATCH).status == 200
    assert api.ask("GET", f"{LEASES}/{name}").status == 404


def test_a_collection_is_deleted_by_its_selector(api: Api, name: str) -> None:
    for suffix in ("a", "b", "c"):
        labels = {"test": name, "doomed": str(suffix != "c")}
        api.create(LEASES, {"metadata": {"name": f"{name}-{suffix}", "labels": labels}, "spec": {}})
    answer = api.ask("DELETE", LEASES, labelSelector=f"test={name},doomed=True")
    assert (answer.status, answer.json()["kind"], len(answer.json()["items"])) == (200, "LeaseList", 2)
    left = api.ask("GET", LEASES, labelSelector=f"test={name}")
    assert [one["metadata"]["name"] for one in left.json()["items"]] == [f"{name}-c"]


def test_a_dry_run_leaves_no_trace(api: Api, name: str) -> None:
    answer = api.ask("POST", LEASES, {"metadata": {"name": name}, "spec": {}}, dryRun="All")
    assert answer.status == 201
    assert answer.json()["metadata"]["uid"]
    assert "resourceVersion" not in answer.json()["metadata"]
    assert api.ask("GET", f"{LEASES}/{name}").status == 404


def test_an_unreadable_timeout_is_a_bad_request(api: Api, name: str) -> None:
    answer = api.ask("POST", NODES, {"metadata": {"name": name}}, timeout="soon")
    message = 'invalid timeout specified in the request URL - time: invalid duration "soon"'
    assert answer.refusal == (400, "BadRequest", message)


def test_a_timeout_is_a_duration(api: Api, name: str) -> None:
    assert api.ask("POST", NODES, {"metadata": {"name": name}}, timeout="10s").status == 201


def test_system_namespaces_stay(api: Api) -> None:
    answer = api.ask("DELETE", f"{NAMESPACES}/default")
    assert answer.refusal == (403, "Forbidden", 'namespaces "default" is forbidden: this namespace may not be deleted')


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-public", "kube-node-lease"])
def test_the_system_namespaces_are_there(api: Api, namespace: str) -> None:
    found = api.get(f"{NAMESPACES}/{namespace}")
    assert found["status"] == {"phase": "Active"}
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace}
