#include "k8s/known_objects.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

namespace sluice::k8s {
namespace {

// Late events come within seconds; no job loses more pods in that time.
constexpr size_t kMaxDeletions = 1000;

}  // namespace

bool KnownObjects::IsGone(const std::string& uid) const {
  return std::find(gone_.begin(), gone_.end(), uid) != gone_.end();
}

ObjectChange KnownObjects::TakeOut(const std::string& uid) {
  ObjectChange change{ObjectChange::Kind::kGone, std::move(objects_[uid])};
  objects_.erase(uid);
  gone_.push_back(uid);
  if (gone_.size() > kMaxDeletions) {
    gone_.pop_front();
  }
  return change;
}

void KnownObjects::Saw(const std::string& version) {
  if (version_.empty() || CompareVersions(version_, version) < 0) {
    version_ = version;
  }
}

Result<std::vector<ObjectChange>> KnownObjects::OnList(std::vector<Object> objects,
                                                       const std::string& version) {
  if (CompareVersions(version, version_) < 0) {
    return Unavailable(
        fmt::format("a list is of version {}, and {} was seen already", version, version_));
  }
  std::set<std::string> listed;
  for (const Object& object : objects) {
    listed.insert(object.uid);
  }
  std::vector<std::string> missing;
  for (const auto& [uid, object] : objects_) {
    if (!listed.contains(uid)) {
      missing.push_back(uid);
    }
  }
  std::vector<ObjectChange> gone, appeared, changed;
  for (const std::string& uid : missing) {
    gone.push_back(TakeOut(uid));
  }
  for (Object& object : objects) {
    const auto known = objects_.find(object.uid);
    if (known == objects_.end()) {
      if (IsGone(object.uid)) {
        continue;
      }
      appeared.push_back({ObjectChange::Kind::kAppeared, object});
    } else if (known->second.resource_version != object.resource_version &&
               CompareVersions(known->second.resource_version, object.resource_version) <= 0) {
      changed.push_back({ObjectChange::Kind::kChanged, object});
    } else {
      continue;
    }
    std::string uid = object.uid;
    objects_[std::move(uid)] = std::move(object);
  }
  // A list has its own version, even if it cannot be compared; an event may have any.
  version_ = version;
  std::move(appeared.begin(), appeared.end(), std::back_inserter(gone));
  std::move(changed.begin(), changed.end(), std::back_inserter(gone));
  return gone;
}

std::vector<ObjectChange> KnownObjects::OnFrame(WatchFrame frame) {
  Object& object = frame.object;
  Saw(object.resource_version);
  if (frame.kind == WatchFrame::Kind::kBookmark || IsGone(object.uid)) {
    return {};
  }
  std::vector<ObjectChange> changes;
  const auto known = objects_.find(object.uid);
  if (known != objects_.end() &&
      CompareVersions(object.resource_version, known->second.resource_version) < 0) {
    return {};
  }
  if (frame.kind == WatchFrame::Kind::kDeleted) {
    if (known != objects_.end()) {
      known->second = std::move(object);  // nothing else may report its end
      const std::string uid = known->first;
      changes.push_back(TakeOut(uid));
    }
    return changes;
  }
  if (known == objects_.end()) {
    const auto before = std::find_if(objects_.begin(), objects_.end(), [&](const auto& each) {
      return each.second.name == object.name && each.second.namespace_name == object.namespace_name;
    });
    if (before != objects_.end()) {
      const std::string uid = before->first;
      changes.push_back(TakeOut(uid));
    }
    changes.push_back({ObjectChange::Kind::kAppeared, object});
  } else if (known->second.resource_version == object.resource_version) {
    return {};
  } else {
    changes.push_back({ObjectChange::Kind::kChanged, object});
  }
  std::string uid = object.uid;
  objects_[std::move(uid)] = std::move(object);
  return changes;
}

}  // namespace sluice::k8s
