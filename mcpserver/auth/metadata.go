package auth

// MetadataPath is where a protected resource tells who issues tokens for it (RFC 9728, section 3). The path of the
// resource may follow.
const MetadataPath = "/.well-known/oauth-protected-resource"

// Metadata is what a protected resource tells of itself (RFC 9728, section 2). It needs no token to be read.
type Metadata struct {
	// Resource is the resource's identifier: the address of the MCP endpoint.
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	Scopes               []string `json:"scopes_supported"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name"`
}
