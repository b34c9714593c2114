#include "planner/pods.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "k8s/quantity/quantity.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "planner/pods_allowed.h"

namespace sluice::planner {
namespace {

using k8s::Quantity;
using Quantities = std::map<std::string, Quantity>;

// A part of an attribute's text.
struct Piece {
  std::string_view text;
  size_t offset = 0;
};

// The text of one attribute, and the places of its parts in the statement.
class PodText {
 public:
  PodText(const AttributeSet& attributes, std::string name)
      : name_(std::move(name)),
        literal_(attributes.SpanOf(name_)),
        text_(attributes.Text(name_).value_or("")) {}

  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }
  Piece all() const { return {text_, 0}; }
  Status Wrong(const Piece& piece, const std::string& what) const {
    return InvalidArgument(fmt::format("{}: {}", name_, what)).At(PlaceOf(piece));
  }
  Status Denied(const Piece& piece, const std::string& what) const {
    return Status(Code::kPermissionDenied, fmt::format("{}: {}", name_, what)).At(PlaceOf(piece));
  }

 private:
  Span PlaceOf(const Piece& piece) const {
    // In quotes without escapes, the text maps to the statement byte by byte.
    if (!literal_.valid() ||
        literal_.end - literal_.begin != static_cast<int64_t>(text_.size()) + 2) {
      return literal_;
    }
    return {literal_.begin + 1 + static_cast<int64_t>(piece.offset),
            literal_.begin + 1 + static_cast<int64_t>(piece.offset + piece.text.size())};
  }

  const std::string name_;
  const Span literal_;
  const std::string text_;
};

Piece Trimmed(Piece piece) {
  while (!piece.text.empty() && piece.text.front() == ' ') {
    piece.text.remove_prefix(1);
    ++piece.offset;
  }
  while (!piece.text.empty() && piece.text.back() == ' ') {
    piece.text.remove_suffix(1);
  }
  return piece;
}

std::vector<Piece> SplitPiece(const Piece& whole, char separator) {
  std::vector<Piece> pieces;
  size_t begin = 0;
  while (begin <= whole.text.size()) {
    const size_t end = std::min(whole.text.find(separator, begin), whole.text.size());
    pieces.push_back(Trimmed({whole.text.substr(begin, end - begin), whole.offset + begin}));
    begin = end + 1;
  }
  return pieces;
}

struct Setting {
  Piece all, key, value;
};

// key=value, separated by commas.
std::vector<Setting> ReadSettings(const PodText& text, const Piece& part, Status* errors) {
  std::vector<Setting> settings;
  for (const Piece& piece : SplitPiece(part, ',')) {
    const size_t equals = piece.text.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == piece.text.size()) {
      errors->Add(text.Wrong(piece, fmt::format("'{}' is not written as name=value", piece.text)));
      continue;
    }
    settings.push_back({piece, Trimmed({piece.text.substr(0, equals), piece.offset}),
                        Trimmed({piece.text.substr(equals + 1), piece.offset + equals + 1})});
    const auto same = [&](const Setting& each) {
      return each.key.text == settings.back().key.text;
    };
    if (std::count_if(settings.begin(), settings.end(), same) > 1) {
      errors->Add(text.Wrong(piece, fmt::format("{} is given twice", settings.back().key.text)));
      settings.pop_back();
    }
  }
  return settings;
}

// Kubernetes' name for it; nullopt: unknown.
std::optional<std::string> ResourceName(std::string_view name) {
  if (name == "gpu") {
    return "nvidia.com/gpu";
  }
  if (name == "disk") {
    return "ephemeral-storage";
  }
  const size_t slash = name.find('/');
  const bool of_a_vendor = slash != std::string_view::npos && slash > 0 && slash + 1 < name.size();
  return name == "cpu" || name == "memory" || name == "ephemeral-storage" || of_a_vendor
             ? std::optional<std::string>(name)
             : std::nullopt;
}

Quantities ReadResources(const PodText& text, Status* errors) {
  Quantities quantities;
  if (text.text().empty()) {
    return quantities;
  }
  for (const Setting& setting : ReadSettings(text, text.all(), errors)) {
    const std::optional<std::string> name = ResourceName(setting.key.text);
    if (!name) {
      errors->Add(
          text.Wrong(setting.key, fmt::format("unknown resource '{}'", setting.key.text))
              .Hint("cpu, memory, gpu, disk, ephemeral-storage, or a vendor's: example.com/tpu"));
      continue;
    }
    const Result<Quantity> quantity = k8s::ParseQuantity(setting.value.text);
    if (!quantity.ok()) {
      const Diagnostic& wrong = quantity.status().diagnostics().front();
      Status status = text.Wrong(setting.value, wrong.message);
      errors->Add(wrong.hint.empty() ? status : std::move(status).Hint(wrong.hint));
    } else if (!(Quantity() < *quantity)) {
      errors->Add(text.Wrong(setting.value, fmt::format("{} must be more than nothing, not {}",
                                                        *name, setting.value.text)));
    } else {
      quantities[*name] = *quantity;
    }
  }
  return quantities;
}

void Write(const Quantities& quantities,
           google::protobuf::RepeatedPtrField<plan::PodResource>* resources) {
  for (const auto& [name, quantity] : quantities) {
    plan::PodResource* resource = resources->Add();
    resource->set_name(name);
    resource->set_amount(quantity.ToString());
  }
}

void FillPriority(const PodText& text, plan::RolePods* role, Status* errors) {
  if (text.text().empty()) {
    return;
  }
  if (text.text() == "high" || text.text() == "low") {
    role->set_high_share(text.text() == "high" ? 1 : 0);
    return;
  }
  double share = -1;
  const char* const end = text.text().data() + text.text().size();
  const auto read = std::from_chars(text.text().data(), end, share);
  if (read.ec != std::errc() || read.ptr != end || !(share >= 0 && share <= 1)) {
    errors->Add(text.Wrong(text.all(), fmt::format("'{}' is no priority", text.text()))
                    .Hint("'high', 'low', or the share of the pods that is high: 0.5"));
    return;
  }
  role->set_high_share(share);
}

// For `role`: engine.<role>_resource_request and the like.
void FillRole(const AttributeSet& attributes, const std::string& role, plan::RolePods* pods,
              Quantities* requests, Status* errors) {
  const PodText request(attributes, fmt::format("engine.{}_resource_request", role));
  const PodText limit(attributes, fmt::format("engine.{}_resource_limit", role));
  *requests = ReadResources(request, errors);
  const Quantities limits = ReadResources(limit, errors);
  for (const auto& [name, most] : limits) {
    const auto asked = requests->find(name);
    if (asked != requests->end() && most < asked->second) {
      errors->Add(limit.Wrong(
          limit.all(), fmt::format("{} of {} is less than {} asks for, {}", most.ToString(), name,
                                   request.name(), asked->second.ToString())));
    }
  }
  Write(*requests, pods->mutable_requests());
  Write(limits, pods->mutable_limits());
  FillPriority(PodText(attributes, fmt::format("engine.{}_pod_priority", role)), pods, errors);
}

Status CheckTemplate(const PodText& text, const PodsAllowed& allowed) {
  if (text.text().empty() || allowed.templates.contains(text.text())) {
    return OkStatus();
  }
  return text
      .Denied(text.all(), fmt::format("the PodTemplate '{}' is not one that statements may use "
                                      "here",
                                      text.text()))
      .Hint(allowed.templates.empty()
                ? "none is: the operator lists them, --pods-allow template=NAME"
                : fmt::format("one of: {}", fmt::join(allowed.templates, ", ")));
}

// Whether the statement may have this volume. Each claim is in one place, and where it holds
// checkpoints it has one root: so a folder of one role never gets the name of another's.
Status CheckVolume(const PodText& text, const Piece& part, const plan::Pods::Volume& volume,
                   const Options& options) {
  const auto& claims = options.pods_allowed->claims;
  const auto found = claims.find(volume.claim());
  if (found == claims.end()) {
    std::vector<std::string> names;
    for (const auto& [name, claim] : claims) {
      names.push_back(name);
    }
    return text
        .Denied(part,
                fmt::format("'{}' is not a claim that statements may mount here", volume.claim()))
        .Hint(names.empty() ? "none is: the operator lists them, --pods-allow claim=NAME:MOUNT_PATH"
                            : fmt::format("one of: {}", fmt::join(names, ", ")));
  }
  const PodsAllowed::Claim& claim = found->second;
  if (volume.mount_path() != claim.mount_path) {
    return text.Denied(part, fmt::format("'{}' is mounted at {}, not at {}", volume.claim(),
                                         claim.mount_path, volume.mount_path()));
  }
  const std::string& inside = volume.sub_path();
  if (!claim.sub_path.empty() && inside != claim.sub_path &&
      !inside.starts_with(claim.sub_path + "/")) {
    return text
        .Denied(part, fmt::format("of '{}' statements may mount {}, or a folder in it",
                                  volume.claim(), claim.sub_path))
        .Hint(fmt::format("sub_path={}", claim.sub_path));
  }
  const std::string& root = options.checkpoint_root.value_or("");
  const bool holds_checkpoints =
      root == claim.mount_path || root.starts_with(claim.mount_path + "/");
  if (holds_checkpoints && inside != claim.sub_path) {
    return text.Denied(part, fmt::format("'{}' holds checkpoints, which have one root: it is "
                                         "mounted without a sub_path of the statement's",
                                         volume.claim()));
  }
  return OkStatus();
}

void FillVolume(const PodText& text, const Piece& part, const Options& options, plan::Pods* pods,
                Status* errors) {
  plan::Pods::Volume volume;
  bool right = true;
  for (const Setting& setting : ReadSettings(text, part, errors)) {
    const std::string value(setting.value.text);
    const std::string_view key = setting.key.text;
    if (key == "claim_name") {
      volume.set_claim(value);
    } else if (key == "mount_path") {
      volume.set_mount_path(value);
      if (value.front() != '/') {
        right = false;
        errors->Add(text.Wrong(setting.value, fmt::format("'{}' does not begin with /", value)));
      } else if (!IsMountPath(value)) {
        right = false;
        errors->Add(text.Wrong(setting.value, fmt::format("a volume cannot be at '{}'", value))
                        .Hint("an absolute path without '..', outside the folders of the system, "
                              "as /data"));
      }
    } else if (key == "sub_path") {
      volume.set_sub_path(value);
      if (!IsSubPath(value)) {
        right = false;
        errors->Add(text.Wrong(setting.value, fmt::format("'{}' is no path in a volume", value))
                        .Hint("a relative path without '..'"));
      }
    } else if (key == "read_only" && (value == "true" || value == "false")) {
      volume.set_read_only(value == "true");
    } else if (key == "host_path") {
      right = false;
      errors->Add(text.Wrong(setting.all, "a statement cannot have a folder of a node")
                      .Hint("a claim_name; or a PodTemplate of an administrator, engine.template"));
    } else {
      right = false;
      errors->Add(text.Wrong(setting.all, fmt::format("unknown setting '{}'", setting.all.text))
                      .Hint("claim_name, mount_path, sub_path, read_only=true"));
    }
  }
  if (right && volume.claim().empty()) {
    errors->Add(text.Wrong(part, "a volume needs a claim_name"));
  } else if (right && volume.mount_path().empty()) {
    errors->Add(text.Wrong(part, "a volume needs a mount_path"));
  } else if (right && options.pods_allowed) {
    errors->Add(CheckVolume(text, part, volume, options));
  }
  *pods->add_volumes() = std::move(volume);
}

Status NotOnPods(const AttributeSet& attributes) {
  Status errors;
  for (const char* const name : PodAttributes()) {
    if (attributes.Given(name)) {
      errors.Add(
          InvalidArgument(fmt::format("{} is about pods, and jobs do not run on pods here", name))
              .At(attributes.SpanOf(name))
              .Hint("leave it out; engine.cpu and engine.memory say what a worker takes"));
    }
  }
  return errors;
}

// The worker's own figures, which the planner and the job scheduler use.
void TakeWorkerFigures(const AttributeSet& attributes, const Quantities& requests,
                       plan::Strategy* strategy, Status* errors) {
  for (const auto& [name, attribute] :
       {std::pair<const char*, const char*>("cpu", "engine.cpu"), {"memory", "engine.memory"}}) {
    const auto asked = requests.find(name);
    if (asked == requests.end()) {
      continue;
    }
    if (attributes.Given(attribute)) {
      errors->Add(InvalidArgument(fmt::format("{} and {} of engine.worker_resource_request are the "
                                              "same thing, given twice",
                                              attribute, name))
                      .At(attributes.SpanOf(attribute)));
    } else if (asked->first == "cpu") {
      strategy->set_cpu(asked->second.AsDouble());
    } else {
      strategy->set_memory_bytes(asked->second.RoundedUp());
    }
  }
}

}  // namespace

const std::vector<const char*>& PodAttributes() {
  static const std::vector<const char*> names = {"engine.template",
                                                 "engine.image_pull_policy",
                                                 "engine.volume",
                                                 "engine.master_resource_request",
                                                 "engine.master_resource_limit",
                                                 "engine.master_pod_priority",
                                                 "engine.worker_resource_request",
                                                 "engine.worker_resource_limit",
                                                 "engine.worker_pod_priority",
                                                 "engine.ps_resource_request",
                                                 "engine.ps_resource_limit",
                                                 "engine.ps_pod_priority"};
  return names;
}

Status FillPods(const AttributeSet& attributes, const Options& options, plan::Strategy* strategy) {
  if (!options.pods) {
    return NotOnPods(attributes);
  }
  if (std::none_of(PodAttributes().begin(), PodAttributes().end(),
                   [&](const char* name) { return attributes.Given(name); })) {
    return OkStatus();
  }
  Status errors;
  plan::Pods* const pods = strategy->mutable_pods();
  pods->set_template_name(attributes.Text("engine.template").value_or(""));
  if (options.pods_allowed) {
    errors.Add(CheckTemplate(PodText(attributes, "engine.template"), *options.pods_allowed));
  }
  pods->set_image_pull_policy(attributes.Text("engine.image_pull_policy").value_or(""));
  const PodText volumes(attributes, "engine.volume");
  if (!volumes.text().empty()) {
    for (const Piece& part : SplitPiece(volumes.all(), ';')) {
      if (!part.text.empty()) {
        FillVolume(volumes, part, options, pods, &errors);
      }
    }
  }
  Quantities master, worker, server;
  FillRole(attributes, "master", pods->mutable_master(), &master, &errors);
  FillRole(attributes, "worker", pods->mutable_workers(), &worker, &errors);
  FillRole(attributes, "ps", pods->mutable_servers(), &server, &errors);
  TakeWorkerFigures(attributes, worker, strategy, &errors);
  return errors;
}

}  // namespace sluice::planner
