package auth

// MetadataPath is the path at which a protected resource publishes the issuers of its tokens (RFC 9728, section
// 3). The path of the resource may follow.
const MetadataPath = "/.well-known/oauth-protected-resource"

// Metadata describes a protected resource (RFC 9728, section 2). Reading it requires no token.
type Metadata struct {
	// Resource is the resource's identifier: the address of the MCP endpoint.
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	Scopes               []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name"`
}
