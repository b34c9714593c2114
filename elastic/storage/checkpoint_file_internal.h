#pragma once

#include "elastic/storage/checkpoint.h"

#include "elastic/storage/checkpoint.pb.h"

// A file of a checkpoint in manifests, configurations and messages.
namespace sluice::elastic {

void ToProto(const CheckpointManifest::File& file, CheckpointFileProto* proto);
CheckpointManifest::File FromProto(const CheckpointFileProto& proto);

}  // namespace sluice::elastic
