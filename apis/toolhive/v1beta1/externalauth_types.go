// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AWSStsConfig exchanges the client's token for temporary credentials of AWS, with which requests are signed (SigV4).
type AWSStsConfig struct {
	// region of AWS.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:Pattern=`^[a-z]{2}(-[a-z]+)+-\d+$`
	// +required
	Region string `json:"region"`
	// service is the name of the AWS service for which requests are signed.
	// +kubebuilder:default="aws-mcp"
	// +optional
	Service string `json:"service,omitempty"`
	// fallbackRoleArn is the role when no mapping fits. Without it roleMappings must not be empty.
	// +kubebuilder:validation:Pattern=`^arn:(aws|aws-cn|aws-us-gov):iam::\d{12}:role/[\w+=,.@\-_/]+$`
	// +optional
	FallbackRoleArn string `json:"fallbackRoleArn,omitempty"`
	// roleMappings select a role by claims, in the order of their priority.
	// +listType=atomic
	// +optional
	RoleMappings []RoleMapping `json:"roleMappings,omitempty"`
	// roleClaim is the claim that the mappings look at.
	// +kubebuilder:default="groups"
	// +optional
	RoleClaim string `json:"roleClaim,omitempty"`
	// sessionDuration is how long the credentials are valid, in seconds.
	// +kubebuilder:validation:Minimum=900
	// +kubebuilder:validation:Maximum=43200
	// +kubebuilder:default=3600
	// +optional
	SessionDuration *int32 `json:"sessionDuration,omitempty"`
	// sessionNameClaim is the claim that names the session.
	// +kubebuilder:default="sub"
	// +optional
	SessionNameClaim string `json:"sessionNameClaim,omitempty"`
	// subjectProviderName selects the upstream whose token is exchanged. Only a VirtualMCPServer reads it.
	// +optional
	SubjectProviderName string `json:"subjectProviderName,omitempty"`
}

// RoleMapping selects a role by the claims of the token. It needs either claim or matcher.
type RoleMapping struct {
	// claim is a value that the claim must contain.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Claim string `json:"claim,omitempty"`
	// matcher is a CEL expression over claims that must be true.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Matcher string `json:"matcher,omitempty"`
	// roleArn is the role to assume.
	// +kubebuilder:validation:Pattern=`^arn:(aws|aws-cn|aws-us-gov):iam::\d{12}:role/[\w+=,.@\-_/]+$`
	// +required
	RoleArn string `json:"roleArn"`
	// priority orders mappings: the lowest goes first, and one without priority goes last.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Priority *int32 `json:"priority,omitempty"`
}

// OBOConfig is an exchange of tokens on behalf of users of Microsoft Entra. Only ToolHive's enterprise build does it.
type OBOConfig struct {
	// tenantId is the tenant, as a GUID or a domain.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z]{2,})$`
	// +optional
	TenantID string `json:"tenantId,omitempty"`
	// authority is the base URL of the login service, for sovereign clouds.
	// +kubebuilder:validation:Pattern=`^https://[^\s?#@]+[^/\s?#@]$`
	// +optional
	Authority string `json:"authority,omitempty"`
	// clientId is the application's ID.
	// +optional
	ClientID string `json:"clientId,omitempty"`
	// clientSecretRef is the key of a Secret that holds the application's secret.
	// +optional
	ClientSecretRef *SecretKeyRef `json:"clientSecretRef,omitempty"`
	// audience of the token that is asked for.
	// +optional
	Audience string `json:"audience,omitempty"`
	// scopes of the token that is asked for. They win over audience.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`
	// subjectTokenProviderName selects the upstream whose token is exchanged; the client's own token when unset.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	// +optional
	SubjectTokenProviderName string `json:"subjectTokenProviderName,omitempty"`
	// cacheSkew is how long before its end a token counts as expired, as a Go duration.
	// +optional
	CacheSkew string `json:"cacheSkew,omitempty"`
}

// XAASpec is an exchange in two steps: an ID token for an identity assertion at the user's identity provider (RFC 8693),
// and the assertion for an access token at the target's authorization server (RFC 7523).
type XAASpec struct {
	// idpTokenUrl is the token endpoint of the user's identity provider.
	// +kubebuilder:validation:Pattern=`^https://.*$`
	// +required
	IDPTokenURL string `json:"idpTokenUrl"`
	// idpClientId at the identity provider.
	// +optional
	IDPClientID string `json:"idpClientId,omitempty"`
	// idpClientSecretRef is the key of a Secret that holds the client secret for the identity provider.
	// +optional
	IDPClientSecretRef *SecretKeyRef `json:"idpClientSecretRef,omitempty"`
	// targetTokenUrl is the token endpoint of the target's authorization server.
	// +required
	TargetTokenURL string `json:"targetTokenUrl"`
	// insecureTargetTokenUrl accepts a targetTokenUrl with http. It is for tests.
	// +optional
	InsecureTargetTokenURL bool `json:"insecureTargetTokenUrl,omitempty"`
	// targetClientId at the target's authorization server.
	// +optional
	TargetClientID string `json:"targetClientId,omitempty"`
	// targetClientSecretRef is the key of a Secret that holds the client secret for the target's authorization server.
	// +optional
	TargetClientSecretRef *SecretKeyRef `json:"targetClientSecretRef,omitempty"`
	// targetAudience is the target's authorization server, as the assertion names it.
	// +required
	TargetAudience string `json:"targetAudience"`
	// targetResource is the resource that the assertion is asked for (RFC 8707).
	// +optional
	TargetResource string `json:"targetResource,omitempty"`
	// scopes of the token that is asked for.
	// +listType=atomic
	// +optional
	Scopes []string `json:"scopes,omitempty"`
	// subjectProviderName selects the upstream whose ID token is exchanged.
	// +optional
	SubjectProviderName string `json:"subjectProviderName,omitempty"`
	// subjectTokenType is the type of the token that is exchanged.
	// +kubebuilder:validation:Enum="urn:ietf:params:oauth:token-type:id_token"
	// +optional
	SubjectTokenType string `json:"subjectTokenType,omitempty"`
}
