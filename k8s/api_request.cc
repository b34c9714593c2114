#include "k8s/api_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "k8s/admission.h"
#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

// The first waits are short, later ones give an API server time to recover.
constexpr double kFirstWaitSeconds = 0.1, kLongestWaitSeconds = 5;
// For a server that answers 429 without Retry-After.
constexpr double kDefaultRetryAfterSeconds = 1;
// A token that was reread and is refused again is invalid.
constexpr int kMaxLogins = 2;
// Of a server's message, in an error.
constexpr size_t kMaxMessageBytes = 2000;
constexpr size_t kMaxNameBytes = 253;

std::string Encode(std::string_view text) {
  std::string encoded;
  for (const char character : text) {
    const bool plain = (character >= 'a' && character <= 'z') ||
                       (character >= 'A' && character <= 'Z') ||
                       (character >= '0' && character <= '9') || character == '-' ||
                       character == '_' || character == '.' || character == '~';
    encoded += plain ? std::string(1, character)
                     : fmt::format("%{:02X}", static_cast<unsigned char>(character));
  }
  return encoded;
}

// A path segment of Kubernetes: lower case, digits, '-', '.' (and ':' in names of RBAC).
bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
                  c == ':';
         });
}

Fault FaultOf(int http_code, std::string_view reason, std::string_view message) {
  if (http_code == 504 && message.find("Too large resource version") != std::string_view::npos) {
    return Fault::kVersionTooLarge;
  }
  switch (http_code) {
    case 401:
      return Fault::kUnauthorized;
    case 403:
      return message.find("exceeded quota") != std::string_view::npos && !NeverFits(message)
                 ? Fault::kQuota
                 : Fault::kForbidden;
    case 404:
      return Fault::kNotFound;
    case 409:
      return reason == "AlreadyExists" ? Fault::kAlreadyExists : Fault::kConflict;
    case 410:
      return Fault::kGone;
    case 429:
      return Fault::kTooManyRequests;
    default:
      break;
  }
  return http_code >= 500 ? Fault::kServer : (http_code >= 400 ? Fault::kInvalid : Fault::kDamaged);
}

Code CodeOf(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return Code::kOk;
    case Fault::kNotFound:
      return Code::kNotFound;
    case Fault::kAlreadyExists:
      return Code::kAlreadyExists;
    case Fault::kConflict:
      return Code::kAborted;
    case Fault::kForbidden:
    case Fault::kUnauthorized:
      return Code::kPermissionDenied;
    case Fault::kQuota:
    case Fault::kTooManyRequests:
      return Code::kResourceExhausted;
    case Fault::kInvalid:
      return Code::kInvalidArgument;
    case Fault::kUntrusted:
      return Code::kFailedPrecondition;
    case Fault::kDeadline:
      return Code::kDeadlineExceeded;
    case Fault::kCancelled:
      return Code::kCancelled;
    case Fault::kGone:
    case Fault::kVersionTooLarge:
    case Fault::kServer:
    case Fault::kUnreachable:
    case Fault::kDamaged:
      break;
  }
  return Code::kUnavailable;
}

}  // namespace

std::string_view VerbName(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kList:
      return "list";
    case Verb::kWatch:
      return "watch";
    case Verb::kCreate:
      return "create";
    case Verb::kUpdate:
      return "update";
    case Verb::kPatch:
      return "patch";
    case Verb::kDelete:
      return "delete";
  }
  return "call";
}

std::string_view FaultName(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kNotFound:
      return "not_found";
    case Fault::kAlreadyExists:
      return "already_exists";
    case Fault::kConflict:
      return "conflict";
    case Fault::kForbidden:
      return "forbidden";
    case Fault::kQuota:
      return "quota";
    case Fault::kUnauthorized:
      return "unauthorized";
    case Fault::kInvalid:
      return "invalid";
    case Fault::kGone:
      return "gone";
    case Fault::kVersionTooLarge:
      return "version_too_large";
    case Fault::kTooManyRequests:
      return "too_many_requests";
    case Fault::kServer:
      return "server";
    case Fault::kUnreachable:
      return "unreachable";
    case Fault::kUntrusted:
      return "untrusted";
    case Fault::kDamaged:
      return "damaged";
    case Fault::kDeadline:
      return "deadline";
    case Fault::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

Result<std::string> UrlPath(const ApiRequest& request) {
  const Resource& resource = request.resource;
  std::string path = resource.group.empty()
                         ? fmt::format("/api/{}", resource.version)
                         : fmt::format("/apis/{}/{}", resource.group, resource.version);
  for (const auto& [what, name] :
       {std::pair<std::string_view, const std::string&>("namespace", request.namespace_name),
        {"name", request.name},
        {"subresource", request.subresource}}) {
    if (!name.empty() && !IsName(name)) {
      return InvalidArgument(
          fmt::format("cannot {}: the {} is not valid in Kubernetes", Describe(request), what));
    }
  }
  if (!request.namespace_name.empty()) {
    path += "/namespaces/" + request.namespace_name;
  }
  path += fmt::format("/{}", resource.plural);
  for (const std::string& part : {request.name, request.subresource}) {
    path += part.empty() ? part : "/" + part;
  }
  char separator = '?';
  for (const auto& [name, value] : request.query) {
    path += fmt::format("{}{}={}", std::exchange(separator, '&'), Encode(name), Encode(value));
  }
  return path;
}

std::string Describe(const ApiRequest& request) {
  std::string text = fmt::format("{} {}", VerbName(request.verb), request.resource.plural);
  if (!request.subresource.empty()) {
    text += "/" + request.subresource;
  }
  if (!request.name.empty()) {
    text += fmt::format(" '{}'", request.name.substr(0, kMaxNameBytes));
  }
  if (!request.namespace_name.empty()) {
    text += fmt::format(" in namespace '{}'", request.namespace_name.substr(0, kMaxNameBytes));
  }
  return text;
}

ApiAnswer AnswerOf(const ApiRequest& request, int http_code, std::string body,
                   std::optional<double> retry_after_seconds) {
  ApiAnswer answer;
  if (http_code >= 200 && http_code < 300) {
    answer.body = std::move(body);
    return answer;
  }
  std::string reason, message;
  if (const Result<rapidjson::Document> status = ParseJsonObject(body, ""); status.ok()) {
    reason = TextIn(*status, {"reason"});
    message = TextIn(*status, {"message"});
  }
  message = message.substr(0, kMaxMessageBytes);
  answer = FailureOf(request, FaultOf(http_code, reason, message),
                     fmt::format("{}{}{}{}{}", http_code, reason.empty() ? "" : " ", reason,
                                 message.empty() ? "" : ": ", message));
  if (const std::string_view hint = AdmissionHint(message); !hint.empty()) {
    answer.status = std::move(answer.status).Hint(std::string(hint));
  }
  answer.retry_after_seconds = retry_after_seconds;
  return answer;
}

ApiAnswer FailureOf(const ApiRequest& request, Fault fault, const std::string& why) {
  ApiAnswer answer;
  answer.fault = fault;
  answer.status = Status(CodeOf(fault), fmt::format("cannot {}: {}", Describe(request), why));
  return answer;
}

std::optional<double> SecondsUntilRetry(const ApiAnswer& answer, int attempts, double jitter) {
  const double most =
      std::min(kLongestWaitSeconds, kFirstWaitSeconds * std::pow(2.0, std::min(attempts - 1, 10)));
  const double backoff = most * (0.5 + jitter / 2);
  switch (answer.fault) {
    case Fault::kTooManyRequests:
      return std::max(backoff, answer.retry_after_seconds.value_or(kDefaultRetryAfterSeconds));
    case Fault::kServer:
      return std::max(backoff, answer.retry_after_seconds.value_or(0));
    case Fault::kUnreachable:
      return backoff;
    case Fault::kUnauthorized:
      return attempts < kMaxLogins ? std::optional<double>(0) : std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace sluice::k8s
