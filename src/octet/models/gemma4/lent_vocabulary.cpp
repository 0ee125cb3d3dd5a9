#include "octet/models/gemma4/lent_vocabulary.h"

#include <utility>

#include "octet/base/check.h"
#include "octet/models/gemma4/config.h"
#include "octet/models/gemma4/weights.h"
#include "octet/models/weight_loader.h"

namespace octet {

LentVocabulary::LentVocabulary(std::shared_ptr<const Checkpoint> checkpoint, Ops& ops)
    : checkpoint_(std::move(checkpoint)), ops_(ops) {
  const Gemma4Config config = read_gemma4_config(*checkpoint_);
  WeightLoader loader(*checkpoint_, ops_, nullptr);
  embedding_ = loader.table(kGemma4Embedding, config.hidden);
  const std::string_view head = gemma4_head_name(*checkpoint_);
  head_ = loader.matrix(head, config.vocabulary, config.hidden);
  head_tensor_ = &checkpoint_->at(head);
  memory_ = {loader.weights_bytes(), loader.tables_bytes(), 0};
  shape_ = config.shape();
  softcap_ = config.softcap;
}

std::unique_ptr<SequenceCache> LentVocabulary::new_cache(
    int64_t /*positions*/, KvType /*type*/
) const {
  OCTET_CHECK(false);
  return nullptr;
}

void LentVocabulary::forward(
    std::span<const SequenceRows> /*batch*/, std::span<const int> /*taps*/, ForwardRows& /*out*/
) {
  OCTET_CHECK(false);
}

void LentVocabulary::embed(std::span<const TokenId> ids, float scale, Rows out) {
  ops_.gather_rows(*embedding_, ids, scale, out);
}

void LentVocabulary::head(ConstRows hidden, Rows logits) {
  const Product product{head_.get(), logits};
  ops_.matmul(hidden, {&product, 1});
}

}  // namespace octet
