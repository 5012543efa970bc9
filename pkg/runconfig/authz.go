// Copyright The Freehold Authors.
// SPDX-License-Identifier: Apache-2.0

package runconfig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	cedarlang "github.com/cedar-policy/cedar-go"
	goyaml "go.yaml.in/yaml/v3"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Types of authorization configurations that the proxyrunner can enforce.
const (
	// AuthzTypeCedar is a policy in Cedar's language; its block is "cedar".
	AuthzTypeCedar = "cedarv1"
	// AuthzTypeHTTP is a policy decision point that is asked by HTTP; its block is "pdp".
	AuthzTypeHTTP = "httpv1"
)

const (
	// AuthzVersion is the version of an authorization configuration that is written inline.
	AuthzVersion = "1.0"
	// AuthzKey is the key, and the file name, of an authorization configuration.
	AuthzKey = "authz.json"
	// NoEntities is a list of no Cedar entities.
	NoEntities = "[]"
)

// Authz is an authorization configuration as the RunConfig holds it. It is complete: the proxyrunner reads more of it
// than is checked here, and a policy that lost a key on the way could allow what its author forbids.
type Authz struct {
	// Type is AuthzTypeCedar or AuthzTypeHTTP.
	Type string
	// PrimaryUpstreamProvider is the provider whose tokens the policies judge by, instead of those of the requests; empty for none.
	PrimaryUpstreamProvider string

	document json.RawMessage
}

// MarshalJSON implements json.Marshaler.
func (a *Authz) MarshalJSON() ([]byte, error) { return a.document, nil }

// ClaimMapping says which claims of a token Cedar policies see as groups and roles.
type ClaimMapping struct {
	GroupClaimName  string `json:"group_claim_name,omitempty"`
	RoleClaimName   string `json:"role_claim_name,omitempty"`
	GroupEntityType string `json:"group_entity_type,omitempty"`
}

// Cedar is an authorization policy in Cedar's language, with the keys of ToolHive's struct and in their order.
type Cedar struct {
	Policies []string `json:"policies"`
	// EntitiesJSON is a JSON list of entities, in a string.
	EntitiesJSON string `json:"entities_json"`
	// PrimaryUpstreamProvider has no counterpart in an MCPServer of its own.
	PrimaryUpstreamProvider string `json:"primary_upstream_provider,omitempty"`
	ClaimMapping
	// MultiValuedClaims are claims that policies see as sets too.
	MultiValuedClaims []string `json:"multi_valued_claims,omitempty"`
}

// decisionPoint is a policy decision point that is asked by HTTP.
type decisionPoint struct {
	HTTP *struct {
		URL string `json:"url"`
		// Timeout in seconds.
		Timeout            int  `json:"timeout"`
		InsecureSkipVerify bool `json:"insecure_skip_verify"`
	} `json:"http"`
	Context *struct {
		IncludeArgs      bool `json:"include_args"`
		IncludeOperation bool `json:"include_operation"`
	} `json:"context"`
	ClaimMapping string `json:"claim_mapping"`
}

// CedarAuthz returns the configuration of a Cedar policy.
func CedarAuthz(cedar *Cedar) (*Authz, error) {
	bytes := len(cedar.EntitiesJSON)
	for _, policy := range cedar.Policies {
		bytes += len(policy)
	}
	defer oneLarge(bytes)()
	if err := cedar.validate(); err != nil {
		return nil, err
	}
	document, err := json.Marshal(struct {
		Version string `json:"version"`
		Type    string `json:"type"`
		Cedar   *Cedar `json:"cedar"`
	}{AuthzVersion, AuthzTypeCedar, cedar})
	if err != nil {
		return nil, err
	}
	return &Authz{Type: AuthzTypeCedar, PrimaryUpstreamProvider: cedar.PrimaryUpstreamProvider, document: document}, nil
}

// contentError is an error whose text repeats a part of the configuration, and the same without that.
type contentError struct{ text, without string }

func (e *contentError) Error() string { return e.text }

// position is where a parser of YAML, JSON or Cedar says that it stopped.
var position = regexp.MustCompile(`\bline \d+|\boffset \d+|:\d+:\d+\b`)

// unread returns the error of a parser, which quotes what it reads, and without that as much as where it stopped.
func unread(err error) error {
	at := position.FindString(err.Error())
	if row, column, ok := strings.Cut(strings.TrimPrefix(at, ":"), ":"); ok {
		at = fmt.Sprintf("line %s, column %s", row, column)
	}
	return &contentError{err.Error(), strings.TrimSuffix("it cannot be read, at "+at, ", at ")}
}

// WithoutContent returns what an error of ParseAuthz says, without a value or a key of the configuration: who refers to a ConfigMap may have
// no right to read it.
func WithoutContent(err error) string {
	if inside, ok := errors.AsType[*contentError](err); ok {
		return strings.ReplaceAll(err.Error(), inside.text, inside.without)
	}
	return err.Error()
}

// ParseAuthz reads an authorization configuration from YAML or JSON, with a claim mapping that goes before its own. It
// returns an error for one that the proxyrunner would not start with, and for one that could be read in two ways. Keys that
// it does not know are kept.
func ParseAuthz(text string, override ClaimMapping) (*Authz, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("it is empty")
	}
	if err := boundDocument(text); err != nil {
		return nil, err
	}
	defer oneLarge(len(text))()
	document, err := oneDocument(text)
	if err != nil {
		return nil, err
	}
	known, err := readKnown(document)
	if err != nil {
		return nil, err
	}
	if known.Version == "" {
		return nil, errors.New("version is missing")
	}
	switch known.Type {
	case AuthzTypeCedar:
		if known.Cedar == nil {
			return nil, errors.New("cedar is missing")
		}
		if err := known.Cedar.validate(); err != nil {
			return nil, err
		}
		if document, err = withClaimMapping(document, override); err != nil {
			return nil, err
		}
		return &Authz{known.Type, known.Cedar.PrimaryUpstreamProvider, document}, nil
	case AuthzTypeHTTP:
		if known.PDP == nil {
			return nil, errors.New("pdp is missing")
		}
		if err := known.PDP.validate(); err != nil {
			return nil, err
		}
		return &Authz{Type: known.Type, document: document}, nil
	default:
		only := fmt.Sprintf("only %q and %q can be used", AuthzTypeCedar, AuthzTypeHTTP)
		return nil, &contentError{fmt.Sprintf("type is %q, and %s", known.Type, only), "type is another one, and " + only}
	}
}

// oneDocument turns YAML or JSON into JSON with sorted keys. A key that is there twice, and a second document, would
// be dropped by the usual way to read YAML.
func oneDocument(text string) (json.RawMessage, error) {
	documents, first, second := goyaml.NewDecoder(strings.NewReader(text)), goyaml.Node{}, goyaml.Node{}
	if err := documents.Decode(&first); err != nil {
		return nil, unread(err)
	}
	if e := (expansion{}); e.length(&first) > mostExpanded {
		return nil, errExpansion
	}
	document, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, unread(err)
	}
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, errors.New("it holds more than one YAML document")
	}
	return document, nil
}

// knownKeys are the keys of a configuration that the proxyrunner reads.
type knownKeys struct {
	Version string         `json:"version"`
	Type    string         `json:"type"`
	Cedar   *Cedar         `json:"cedar"`
	PDP     *decisionPoint `json:"pdp"`
}

// readKnown reads what the proxyrunner reads. Keys are case-insensitive; a document in which that makes a difference is
// refused, since nothing says which of two such keys is meant.
func readKnown(document json.RawMessage) (*knownKeys, error) {
	known, exact := &knownKeys{}, &knownKeys{}
	if err := json.Unmarshal(document, known); err != nil {
		without := "it is not an object"
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mismatch.Field != "" {
			without = fmt.Sprintf("%s is not of type %s", mismatch.Field, mismatch.Type)
		}
		return nil, &contentError{err.Error(), without}
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, exact); err != nil {
		return nil, unread(err)
	}
	if !reflect.DeepEqual(known, exact) {
		return nil, errors.New("a key has an upper case letter where the proxyrunner's has a lower case one")
	}
	return known, refuseTwins(document)
}

// refuseTwins returns an error if an object in a JSON text has two keys that differ only in their case. The proxyrunner takes them for one
// and obeys the last. Attributes and tags of entities are left out: their keys are the user's, and differ by case.
func refuseTwins(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	return twinsIn(value)
}

func twinsIn(value any) error {
	switch value := value.(type) {
	case []any:
		for _, part := range value {
			if err := twinsIn(part); err != nil {
				return err
			}
		}
	case map[string]any:
		exact := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			folded := strings.ToLower(strings.ToUpper(key)) // "ſ" is "s" too, as it is to the proxyrunner.
			if twin, ok := exact[folded]; ok {
				const differ = "differ only in their case, and the proxyrunner would obey one of them; remove the other"
				return &contentError{fmt.Sprintf("the keys %q and %q %s", twin, key, differ), "two keys " + differ}
			}
			if exact[folded] = key; key == "attrs" || key == "tags" {
				continue
			}
			if err := twinsIn(value[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// withClaimMapping puts a claim mapping over that of a Cedar document. What is empty changes nothing.
func withClaimMapping(document json.RawMessage, override ClaimMapping) (json.RawMessage, error) {
	if override == (ClaimMapping{}) {
		return document, nil
	}
	var whole, cedar map[string]json.RawMessage
	if err := json.Unmarshal(document, &whole); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(whole["cedar"], &cedar); err != nil {
		return nil, err
	}
	data, err := json.Marshal(override)
	if err != nil {
		return nil, err
	}
	// It sets the keys that the override has and leaves the others.
	if err := json.Unmarshal(data, &cedar); err != nil {
		return nil, err
	}
	if whole["cedar"], err = json.Marshal(cedar); err != nil {
		return nil, err
	}
	return json.Marshal(whole)
}

// validate parses the parts in Cedar's language as the proxyrunner does, which exits where that fails.
func (c *Cedar) validate() error {
	if len(c.Policies) == 0 {
		return errors.New("there is no policy")
	}
	for i, text := range c.Policies {
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("policies[%d] is blank", i)
		}
		if err := parsePolicy(text); err != nil {
			return fmt.Errorf("policies[%d] is not a policy in Cedar's language: %w", i, err)
		}
	}
	if name := c.GroupEntityType; name != "" &&
		(strings.Contains(name, "::") || parsePolicy(fmt.Sprintf(`permit(principal in %s::"x", action, resource);`, name)) != nil) {
		const not = "is not a name of Cedar's language, or has a namespace"
		return &contentError{fmt.Sprintf("group_entity_type %q %s", name, not), "group_entity_type " + not}
	}
	if c.EntitiesJSON == "" {
		return nil
	}
	if err := boundEntities(c.EntitiesJSON); err != nil {
		return fmt.Errorf("the entities are too many: %w", err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(c.EntitiesJSON), &list); err != nil {
		return fmt.Errorf("the entities are not a JSON list: %w", unread(err))
	}
	if list == nil {
		return errors.New("the entities are not a JSON list: they are null")
	}
	var entities cedarlang.EntityMap
	if err := json.Unmarshal([]byte(c.EntitiesJSON), &entities); err != nil {
		return fmt.Errorf("the entities are not Cedar's: %w", unread(err))
	}
	return refuseTwins([]byte(c.EntitiesJSON))
}

func (p *decisionPoint) validate() error {
	if p.HTTP == nil || p.HTTP.URL == "" {
		return errors.New("pdp.http.url is missing")
	}
	address, err := url.Parse(p.HTTP.URL)
	if err != nil {
		// Its text repeats the URL, which may hold a password.
		return errors.New("pdp.http.url is not a URL")
	}
	if address.Scheme != "http" && address.Scheme != "https" {
		return &contentError{fmt.Sprintf("the scheme of pdp.http.url is %q; it must be http or https", address.Scheme), "the scheme of pdp.http.url must be http or https"}
	}
	if p.ClaimMapping != "mpe" && p.ClaimMapping != "standard" {
		return &contentError{fmt.Sprintf("pdp.claim_mapping is %q; it must be mpe or standard", p.ClaimMapping), "pdp.claim_mapping must be mpe or standard"}
	}
	return nil
}

// InlineDocument returns the configuration as ToolHive stores an inline one in a separate ConfigMap: compact, keys in
// alphabetical order, without claim names.
func InlineDocument(policies []string, entitiesJSON string) (string, error) {
	type cedar struct {
		EntitiesJSON string   `json:"entities_json"`
		Policies     []string `json:"policies"`
	}
	data, err := json.Marshal(struct {
		Cedar   cedar  `json:"cedar"`
		Type    string `json:"type"`
		Version string `json:"version"`
	}{cedar{entitiesJSON, policies}, AuthzTypeCedar, AuthzVersion})
	if err != nil {
		return "", fmt.Errorf("authorization configuration: %w", err)
	}
	return string(data), nil
}
