"""The flags about what the node serves, and its certificates."""

from agent.adapters.settings.table.row import SERVING, TLS, kubelet_flag

ROWS = (
    kubelet_flag("port", SERVING, "Port of the kubelet's API (HTTPS)."),
    kubelet_flag("healthz-port", SERVING, "Port of /healthz; 0 for none."),
    kubelet_flag("healthz-bind-address", SERVING, "Address of /healthz."),
    kubelet_flag("enable-server", SERVING, "Serve the kubelet's API; false for nothing but /healthz."),
    kubelet_flag("address", SERVING, "Address of the kubelet's API; 0.0.0.0 for all."),
    kubelet_flag("read-only-port", SERVING, "Port of pods, figures and metrics for everybody (HTTP); 0 for none."),
    kubelet_flag("anonymous-auth", SERVING, "Serve those who do not say who they are."),
    kubelet_flag("authentication-token-webhook", SERVING, "Ask the API server who bears a token."),
    kubelet_flag("authentication-token-webhook-cache-ttl", SERVING, "How long that answer is kept."),
    kubelet_flag(
        "authorization-mode",
        SERVING,
        "Whether the API server is asked what somebody may do (Webhook), or nobody is (AlwaysAllow).",
    ),
    kubelet_flag("authorization-webhook-cache-authorized-ttl", SERVING, "How long a yes is kept."),
    kubelet_flag("authorization-webhook-cache-unauthorized-ttl", SERVING, "How long a no is kept."),
    kubelet_flag("enable-debugging-handlers", SERVING, "Serve /logs, /configz, /exec and the like."),
    kubelet_flag("cert-dir", TLS, "Where certificates are kept.", "DIR"),
    kubelet_flag(
        "client-ca-file", TLS, "Authorities whose client certificates are trusted; read again when it changes.", "FILE"
    ),
    kubelet_flag(
        "tls-cert-file", TLS, "Certificate to serve with; without one, one is made. Read again when it changes.", "FILE"
    ),
    kubelet_flag("tls-private-key-file", TLS, "Its key.", "FILE"),
    kubelet_flag("tls-min-version", TLS, "Oldest TLS to speak: VersionTLS12 or VersionTLS13.", "VERSION"),
    kubelet_flag("tls-cipher-suites", TLS, "Cipher suites of TLS 1.2 to offer, in IANA's names."),
    kubelet_flag("rotate-certificates", TLS, "Renew the client certificate."),
    kubelet_flag("rotate-server-certificates", TLS, "Get the serving certificate from the cluster."),
)
