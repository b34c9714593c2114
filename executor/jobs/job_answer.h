#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::executor {

class ResultRows;
class ResultSink;

// The bytes of a job's answer, as stored (catalog::JobStore::Answer) and as sent from the job's
// process to its listeners.
std::string AnswerBytes(const ResultRows& rows, std::string_view tag);
// For a running job: the columns that it will answer with.
std::string AnswerBytes(const Schema& columns);
// For one that has failed or was cancelled.
std::string AnswerBytes(const Status& failed);

// Sends the rows and the tag; returns the job's error as recorded if it failed.
Status SendAnswer(const std::string& bytes, ResultSink& sink);
// No columns: none are known.
Schema ColumnsOfAnswer(const std::string& bytes);
// OK unless the job failed.
Status ErrorOfAnswer(const std::string& bytes);

// The same answer with notices for the job's client, keyed by their times.
std::string WithNotices(std::string bytes, const std::map<int64_t, std::string>& notices);
std::map<int64_t, std::string> NoticesOfAnswer(const std::string& bytes);

}  // namespace sluice::executor
