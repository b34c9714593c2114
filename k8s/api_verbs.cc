#include "k8s/api_verbs.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

// A list whose `continue` expires this often cannot be read by a client.
constexpr int kMaxListings = 3;
// For an object that other clients keep changing.
constexpr int kMaxChanges = 10;
// A list of more would not fit.
constexpr size_t kMaxListed = 100'000;

ApiRequest RequestOf(Verb verb, const Resource& resource, const std::string& namespace_name,
                     const std::string& name) {
  ApiRequest request;
  request.verb = verb;
  request.resource = resource;
  request.namespace_name = namespace_name;
  request.name = name;
  return request;
}

ObjectAnswer ObjectOf(const ApiRequest& request, ApiAnswer answer) {
  if (!answer.ok()) {
    return {answer.fault, std::move(answer.status), {}};
  }
  Result<Object> object = ReadObject(std::move(answer.body), "the answer");
  if (!object.ok()) {
    ApiAnswer failure = FailureOf(request, Fault::kDamaged, object.status().message());
    return {failure.fault, std::move(failure.status), {}};
  }
  return {Fault::kNone, {}, *std::move(object)};
}

// Fills in `listing`; kGone: it has to begin anew.
Fault ListPages(ApiClient& client, const Selection& selection, int page_size,
                const std::stop_token& stop, Listing& listing) {
  ApiRequest request = RequestOf(Verb::kList, selection.resource, selection.namespace_name, "");
  std::string next;
  listing = {};
  do {
    request.query = {{"limit", std::to_string(page_size)}};
    if (!selection.label_selector.empty()) {
      request.query.emplace_back("labelSelector", selection.label_selector);
    }
    if (!next.empty()) {
      request.query.emplace_back("continue", next);
    }
    ApiAnswer answer = client.Call(request, stop);
    if (!answer.ok()) {
      listing.status = std::move(answer.status);
      return answer.fault;
    }
    Result<ObjectPage> page = ReadObjectPage(answer.body, "the answer");
    if (!page.ok() || listing.objects.size() + page->objects.size() > kMaxListed) {
      listing.status = FailureOf(request, Fault::kDamaged,
                                 page.ok() ? fmt::format("more than {} objects", kMaxListed)
                                           : page.status().message())
                           .status;
      return Fault::kDamaged;
    }
    // A page that repeats its own `continue` would never end.
    if (!page->next.empty() && (page->next == next || page->objects.empty())) {
      listing.status = FailureOf(request, Fault::kDamaged, "its pages do not end").status;
      return Fault::kDamaged;
    }
    std::move(page->objects.begin(), page->objects.end(), std::back_inserter(listing.objects));
    listing.resource_version = page->resource_version;
    next = page->next;
  } while (!next.empty());
  return Fault::kNone;
}

std::vector<ObjectAnswer> TryToCreate(ApiClient& client, const std::vector<Creation>& creations,
                                      const std::stop_token& stop) {
  std::vector<ApiRequest> requests;
  for (const Creation& creation : creations) {
    requests.push_back(RequestOf(Verb::kCreate, creation.resource, creation.namespace_name, ""));
    requests.back().body = creation.json;
  }
  std::vector<ApiAnswer> calls = client.CallAll(requests, stop);
  std::vector<ObjectAnswer> answers(creations.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    const Result<Object> object = ReadObject(creations[i].json, "the object to create");
    if (!calls[i].ok() && object.ok()) {
      calls[i].status = std::move(calls[i].status).Because(object->name);
    }
    answers[i] = ObjectOf(requests[i], std::move(calls[i]));
  }
  return answers;
}

bool IsOurs(const Object& there, const Object& ours) {
  return !there.leaving &&
         std::all_of(ours.labels.begin(), ours.labels.end(), [&there](const auto& label) {
           const auto found = there.labels.find(label.first);
           return found != there.labels.end() && found->second == label.second;
         });
}

}  // namespace

Listing ListObjects(ApiClient& client, const Selection& selection, const std::stop_token& stop,
                    int page_size) {
  Listing listing;
  for (int i = 0; i < kMaxListings; ++i) {
    listing.fault = ListPages(client, selection, page_size, stop, listing);
    if (listing.fault != Fault::kGone) {
      break;
    }
  }
  if (!listing.ok()) {
    listing.objects.clear();
  }
  return listing;
}

ObjectAnswer GetObject(ApiClient& client, const Resource& resource,
                       const std::string& namespace_name, const std::string& name,
                       const std::stop_token& stop) {
  const ApiRequest request = RequestOf(Verb::kGet, resource, namespace_name, name);
  return ObjectOf(request, client.Call(request, stop));
}

std::vector<ObjectAnswer> CreateMissing(ApiClient& client, const std::vector<Creation>& creations,
                                        const std::stop_token& stop) {
  std::vector<ObjectAnswer> answers = TryToCreate(client, creations, stop);
  for (ObjectAnswer& answer : answers) {
    if (answer.fault == Fault::kAlreadyExists) {
      answer = {};
    }
  }
  return answers;
}

std::vector<ObjectAnswer> CreateAll(ApiClient& client, const std::vector<Creation>& creations,
                                    const std::stop_token& stop) {
  std::vector<ObjectAnswer> answers = TryToCreate(client, creations, stop);
  std::vector<ApiRequest> questions;
  std::vector<size_t> asked;  // the creation to which each belongs
  std::vector<Object> ours;
  for (size_t i = 0; i < answers.size(); ++i) {
    Result<Object> object = ReadObject(creations[i].json, "the object to create");
    if (answers[i].fault == Fault::kAlreadyExists && object.ok()) {
      questions.push_back(
          RequestOf(Verb::kGet, creations[i].resource, creations[i].namespace_name, object->name));
      asked.push_back(i);
      ours.push_back(*std::move(object));
    }
  }
  std::vector<ApiAnswer> found = client.CallAll(questions, stop);
  for (size_t i = 0; i < found.size(); ++i) {
    ObjectAnswer there = ObjectOf(questions[i], std::move(found[i]));
    // It stays unknown whose it is: a right that is missing is not there the next time either.
    const bool forbidden = there.fault == Fault::kForbidden;
    if (forbidden || (there.ok() && IsOurs(there.object, ours[i]))) {
      answers[asked[i]] = std::move(there);
    }
  }
  return answers;
}

ObjectAnswer ChangeObject(ApiClient& client, const Resource& resource,
                          const std::string& namespace_name, const std::string& name,
                          const Edit& edit, const std::stop_token& stop) {
  ObjectAnswer written;
  for (int i = 0; i < kMaxChanges; ++i) {
    ObjectAnswer current = GetObject(client, resource, namespace_name, name, stop);
    if (!current.ok()) {
      return current;
    }
    ApiRequest request = RequestOf(Verb::kUpdate, resource, namespace_name, name);
    Result<std::string> changed = edit(current.object);
    if (!changed.ok()) {
      return {Fault::kInvalid, changed.status(), {}};
    }
    if (*changed == current.object.json) {
      return current;
    }
    request.body = *std::move(changed);
    written = ObjectOf(request, client.Call(request, stop));
    if (written.fault != Fault::kConflict) {
      break;
    }
  }
  return written;
}

ObjectAnswer PatchObject(ApiClient& client, const Resource& resource,
                         const std::string& namespace_name, const std::string& name,
                         const std::string& subresource, const std::string& patch,
                         const std::stop_token& stop) {
  ApiRequest request = RequestOf(Verb::kPatch, resource, namespace_name, name);
  request.subresource = subresource;
  request.body = patch;
  return ObjectOf(request, client.Call(request, stop));
}

std::vector<ApiAnswer> DeleteAll(ApiClient& client, const std::vector<Deletion>& deletions,
                                 const std::stop_token& stop) {
  std::vector<ApiRequest> requests;
  for (const Deletion& deletion : deletions) {
    ApiRequest request =
        RequestOf(Verb::kDelete, deletion.resource, deletion.namespace_name, deletion.name);
    rapidjson::Document options;
    options.SetObject();
    auto& memory = options.GetAllocator();
    SetMember(options, "kind", JsonText("DeleteOptions", memory), memory);
    SetMember(options, "apiVersion", JsonText("v1", memory), memory);
    SetMember(options, "gracePeriodSeconds", rapidjson::Value(std::max(1, deletion.grace_seconds)),
              memory);
    if (!deletion.uid.empty()) {
      SetMember(Within(options, {"preconditions"}, memory), "uid", JsonText(deletion.uid, memory),
                memory);
    }
    request.body = ToJson(options);
    requests.push_back(std::move(request));
  }
  std::vector<ApiAnswer> answers = client.CallAll(requests, stop);
  for (size_t i = 0; i < answers.size(); ++i) {
    const bool another = answers[i].fault == Fault::kConflict && !deletions[i].uid.empty();
    if (answers[i].fault == Fault::kNotFound || another) {
      answers[i] = {};
    }
  }
  return answers;
}

}  // namespace sluice::k8s
