#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "octet/base/error.h"
#include "octet/cli/checkpoint_report.h"
#include "octet/cli/commands/commands.h"
#include "octet/cli/json_writer.h"
#include "octet/cli/terminal.h"
#include "octet/formats/checkpoint_validation.h"
#include "octet/formats/open_checkpoint.h"

namespace octet::cli {
namespace {

void print_report(const CheckpointReport& report) {
  fmt::print("{}: {}\n", report.path, report.architecture);
  fmt::print("  parameters          {}\n", report.parameters);
  fmt::print("  bytes               {}\n", format_bytes(report.bytes));
  fmt::print(
      "  bytes per token     {} of weights are read for every decoded token\n",
      format_bytes(report.token_bytes)
  );
  fmt::print(
      "  K/V per token       {} in BF16 for every position, and {} for the windows\n",
      format_bytes(report.kv_token_bytes),
      format_bytes(report.kv_window_bytes)
  );
  fmt::print("  tensors by type\n");
  for (const TypeTotals& row : report.types) {
    fmt::print(
        "    {:<8} {:>5} tensors  {:>13} parameters  {:>9}\n",
        row.type,
        row.tensors,
        row.parameters,
        format_bytes(row.bytes)
    );
  }
}

void print_metadata(const Checkpoint& checkpoint) {
  fmt::print("  metadata\n");
  for (const auto& [key, value] : checkpoint.metadata.entries()) {
    fmt::print(
        "    {:<44} {} ({})\n", one_line(key), metadata_text(value), metadata_type_name(value)
    );
  }
}

void print_tensors(const Checkpoint& checkpoint) {
  fmt::print("  tensors\n");
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    fmt::print(
        "    {:<36} {:<8} {}\n",
        tensor.name,
        dtype_facts(tensor.dtype).name,
        shape_text(tensor.shape)
    );
  }
}

void print_pair(const PairReport& pair) {
  fmt::print("pair: {} with {}\n", pair.target, pair.drafter);
  for (const PairCheck& check : pair.checks) {
    fmt::print(
        "  {:<18} expected {}, found {}: {}\n",
        check.what,
        check.expected,
        check.found,
        check.fits ? "fits" : "DOES NOT FIT"
    );
  }
}

void write_report(JsonWriter& json, const CheckpointReport& report, const Checkpoint& checkpoint) {
  json.begin_object().member("path", report.path).member("architecture", report.architecture);
  json.member("parameters", report.parameters).member("bytes", report.bytes);
  json.member("bytes_per_token", report.token_bytes)
      .member("kv_bytes_per_token", report.kv_token_bytes);
  json.member("kv_window_bytes", report.kv_window_bytes).key("types").begin_array();
  for (const TypeTotals& row : report.types) {
    json.begin_object().member("type", row.type).member("tensors", row.tensors);
    json.member("parameters", row.parameters).member("bytes", row.bytes).end_object();
  }
  json.end_array().key("metadata").begin_object();
  for (const auto& [key, value] : checkpoint.metadata.entries()) {
    json.member(key, metadata_text(value));
  }
  json.end_object().key("tensors").begin_array();
  for (const LogicalTensor& tensor : checkpoint.tensors()) {
    json.begin_object().member("name", tensor.name).member("type", dtype_facts(tensor.dtype).name);
    json.member("shape", shape_text(tensor.shape)).end_object();
  }
  json.end_array().end_object();
}

void write_pair(JsonWriter& json, const PairReport& pair) {
  json.begin_object().member("target", pair.target).member("drafter", pair.drafter);
  json.member("fits", pair.fits()).key("checks").begin_array();
  for (const PairCheck& check : pair.checks) {
    json.begin_object().member("what", check.what).member("expected", check.expected);
    json.member("found", check.found).member("fits", check.fits).end_object();
  }
  json.end_array().end_object();
}

using Checkpoints = std::vector<std::shared_ptr<const Checkpoint>>;

/// Every drafter among the files with every target.
std::vector<PairReport> check_pairs(const Checkpoints& checkpoints) {
  std::vector<PairReport> pairs;
  for (const auto& target : checkpoints) {
    for (const auto& drafter : checkpoints) {
      if (target->architecture() == "gemma4" && drafter->architecture() == "dflash") {
        pairs.push_back(check_pair_of(*target, *drafter));
      }
    }
  }
  return pairs;
}

void print_text(
    const InspectArguments& arguments,
    const Checkpoints& checkpoints,
    const std::vector<PairReport>& pairs
) {
  for (const auto& checkpoint : checkpoints) {
    print_report(report_on(*checkpoint));
    print_metadata(*checkpoint);
    if (arguments.all_tensors) {
      print_tensors(*checkpoint);
    }
  }
  for (const PairReport& pair : pairs) {
    print_pair(pair);
  }
}

void print_json(const Checkpoints& checkpoints, const std::vector<PairReport>& pairs) {
  JsonWriter json;
  json.begin_object().key("checkpoints").begin_array();
  for (const auto& checkpoint : checkpoints) {
    write_report(json, report_on(*checkpoint), *checkpoint);
  }
  json.end_array().key("pairs").begin_array();
  for (const PairReport& pair : pairs) {
    write_pair(json, pair);
  }
  json.end_array().end_object();
  fmt::print("{}\n", json.text());
}

}  // namespace

int inspect(const InspectArguments& arguments) {
  Checkpoints checkpoints;
  for (const std::string& file : arguments.files) {
    checkpoints.push_back(open_checkpoint(file));
    if (arguments.check_tensors) {
      check_tensor_values(*checkpoints.back());
    }
  }
  const std::vector<PairReport> pairs = check_pairs(checkpoints);
  if (arguments.json) {
    print_json(checkpoints, pairs);
  } else {
    print_text(arguments, checkpoints, pairs);
  }
  const auto misfit =
      std::find_if(pairs.begin(), pairs.end(), [](const PairReport& pair) { return !pair.fits(); });
  if (misfit != pairs.end()) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format(
            "{} is not a drafter for {}; the lines above say why", misfit->drafter, misfit->target
        )
    );
  }
  return 0;
}

}  // namespace octet::cli
