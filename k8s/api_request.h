#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "k8s/object.h"

namespace sluice::k8s {

enum class Verb { kGet, kList, kWatch, kCreate, kUpdate, kPatch, kDelete };
std::string_view VerbName(Verb verb);  // as RBAC writes it: "get", "create"

// One call of the API. A patch is a JSON merge patch (RFC 7386).
struct ApiRequest {
  Verb verb = Verb::kGet;
  Resource resource;
  std::string namespace_name;  // empty: of the whole cluster
  std::string name;            // empty: list, create
  std::string subresource;     // "status"; empty: none
  std::vector<std::pair<std::string, std::string>> query;
  std::string body;
};

// The path and query of the URL. An error if a name is not valid in Kubernetes, so that no text can
// address another object than it names.
Result<std::string> UrlPath(const ApiRequest& request);

// "create pods 'w-3' in namespace 'team'"
std::string Describe(const ApiRequest& request);

// The kinds of failures that callers distinguish.
enum class Fault {
  kNone,
  kNotFound,
  kAlreadyExists,
  kConflict,         // changed by another client meanwhile, or of another uid
  kForbidden,        // a right is missing, or admission never lets it in (NeverFits)
  kQuota,            // a ResourceQuota is used up for now
  kUnauthorized,     // the credentials are not accepted
  kInvalid,          // the object is refused
  kGone,             // the resourceVersion, or a list's continue, is too old
  kVersionTooLarge,  // this API server has not seen that resourceVersion yet
  kTooManyRequests,
  kServer,       // another error of the server's
  kUnreachable,  // no connection, or it broke
  kUntrusted,    // TLS: its certificate or ours
  kDamaged,      // an answer that cannot be understood
  kDeadline,
  kCancelled,
};
std::string_view FaultName(Fault fault);  // for metrics: "conflict"

struct ApiAnswer {
  Fault fault = Fault::kNone;
  Status status;  // OK if there is no fault; otherwise names verb, resource, namespace
  std::string body;
  std::optional<double> retry_after_seconds;

  bool ok() const { return fault == Fault::kNone; }
};

// Interprets the server's answer; `body` may be a Status object or anything else.
ApiAnswer AnswerOf(const ApiRequest& request, int http_code, std::string body,
                   std::optional<double> retry_after_seconds);
ApiAnswer FailureOf(const ApiRequest& request, Fault fault, const std::string& why);

// How long to wait before the call is retried after `attempts` attempts, the last of which returned
// `answer`; nullopt: it is not retried. `jitter`: from 0 to 1. Pure.
std::optional<double> SecondsUntilRetry(const ApiAnswer& answer, int attempts, double jitter);

}  // namespace sluice::k8s
