"""The flags about what the node serves, and its certificates."""

from agent.adapters.settings.table.row import SERVING, TLS, Flag

ROWS = (
    Flag("port", "int32", SERVING, "Port the Node tells as its kubelet's.", field="port"),
    Flag("healthz-port", "int32", SERVING, "Port of /healthz; 0 for none.", field="healthzPort"),
    Flag("healthz-bind-address", "ip", SERVING, "Address of /healthz.", field="healthzBindAddress"),
    Flag("enable-server", "bool", SERVING, "Serve the kubelet's API.", field="enableServer", later=True),
    Flag("address", "ip", SERVING, "Address to serve on.", field="address", later=True),
    Flag(
        "read-only-port", "int32", SERVING, "Port without authentication; 0 for none.", field="readOnlyPort", later=True
    ),
    Flag(
        "anonymous-auth",
        "bool",
        SERVING,
        "Take anonymous requests.",
        field="authentication.anonymous.enabled",
        later=True,
    ),
    Flag(
        "authentication-token-webhook",
        "bool",
        SERVING,
        "Ask the API server who bears a token.",
        field="authentication.webhook.enabled",
        later=True,
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        "duration",
        SERVING,
        "How long that answer is kept.",
        field="authentication.webhook.cacheTTL",
        later=True,
    ),
    Flag("authorization-mode", "string", SERVING, "AlwaysAllow or Webhook.", field="authorization.mode", later=True),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        "duration",
        SERVING,
        "How long a yes is kept.",
        field="authorization.webhook.cacheAuthorizedTTL",
        later=True,
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        "duration",
        SERVING,
        "How long a no is kept.",
        field="authorization.webhook.cacheUnauthorizedTTL",
        later=True,
    ),
    Flag(
        "enable-debugging-handlers",
        "bool",
        SERVING,
        "Serve logs and what runs commands.",
        field="enableDebuggingHandlers",
        later=True,
    ),
    Flag(
        "cert-dir",
        "string",
        TLS,
        "Where certificates are kept.",
        metavar="DIR",
        default="/var/lib/kubelet/pki",
    ),
    Flag(
        "client-ca-file",
        "string",
        TLS,
        "Authority whose client certificates are trusted.",
        field="authentication.x509.clientCAFile",
        metavar="FILE",
        later=True,
    ),
    Flag("tls-cert-file", "string", TLS, "Certificate to serve with.", field="tlsCertFile", metavar="FILE", later=True),
    Flag("tls-private-key-file", "string", TLS, "Its key.", field="tlsPrivateKeyFile", metavar="FILE", later=True),
    Flag(
        "tls-min-version", "string", TLS, "Oldest TLS to speak.", field="tlsMinVersion", metavar="VERSION", later=True
    ),
    Flag("tls-cipher-suites", "strings", TLS, "Cipher suites to offer.", field="tlsCipherSuites", later=True),
    Flag("rotate-certificates", "bool", TLS, "Renew the client certificate.", field="rotateCertificates"),
    Flag(
        "rotate-server-certificates",
        "bool",
        TLS,
        "Get the serving certificate from the cluster.",
        field="serverTLSBootstrap",
    ),
)
