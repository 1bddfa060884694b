#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes profiles/workloads/*.json: the gradients of known models, derived from their architectures.

Each model below is written down in the order in which its forward pass first uses the parameters. The backward pass
finishes their gradients in the reverse order; a parameter used at both ends (an embedding that is also the output
layer) is finished last, which is why it stands where it is used first. What one operation of PyTorch takes (a norm's
weight and bias, a convolution's) is finished together, in the order in which it takes them; a linear layer's weight is
transposed first, so that its bias is finished before. tests/torch/order.sh compares with a recording. The gradients of
an LSTM cell come out of one kernel: their order among each other says nothing.

Three models also say what their layers compute: multiplications and additions (2 operations) of convolutions, matrices
and attention, and how many elements go from and to memory. Assumed: each layer reads its inputs and weights once and
writes its outputs once; batch norm, activations, pooling and sums of branches are fused into the layer before.

    scripts/generate_workloads.py            writes the files
    scripts/generate_workloads.py --check    exit 1 if a file differs from what would be written
"""

import argparse
import json
import math
import pathlib
import re
import sys


class Forward:
    """Parameters in the order of their first use: (name, elements)."""

    def __init__(self):
        self.parameters = []
        self.layers = []

    def add(self, name, *shape):
        self.parameters.append((name, math.prod(shape)))
        if self.layers:
            self.layers[-1].setdefault("tensors", []).append(name)

    def operation(self, *parameters):
        """Parameters (name, *shape) that one operation takes."""
        for parameter in reversed(parameters):
            self.add(*parameter)

    def layer(self, name, forward, input_gradient=None, weight_gradient=None, exchange=None):
        """What is added from here on belongs to it. A computation: operations and elements moved a sample, and elements
        moved whatever the batch."""
        layer = {"name": name}
        for key, work in (("forward", forward), ("input_gradient", input_gradient),
                          ("weight_gradient", weight_gradient)):
            if work:
                names = ("flops_per_sample", "elements_per_sample", "elements")
                layer[key] = {name: count for name, count in zip(names, work) if count}
        if exchange:
            layer["exchange"] = dict(zip(("elements_per_sample", "before"), exchange))
        self.layers.append(layer)

    def product(self, name, inputs, outputs, weights, flops, first=False):
        """A layer that is a convolution or a matrix: three products of the same size."""
        work = (flops, inputs + outputs, weights)
        self.layer(name, work, None if first else work, work)

    def linear(self, name, inputs, outputs, bias=True, weight="weight"):
        self.add(f"{name}.{weight}", outputs, inputs)
        if bias:
            self.add(f"{name}.bias", outputs)

    def conv(self, name, inputs, outputs, kernel, bias=False):
        self.operation((f"{name}.weight", outputs, inputs, kernel, kernel), *[(f"{name}.bias", outputs)] * bias)

    def spectral_conv(self, name, inputs, outputs, kernel, bias=False):
        """Its weight is divided by a norm of its own before the convolution takes it."""
        self.add(f"{name}.weight_orig", outputs, inputs, kernel, kernel)
        if bias:
            self.add(f"{name}.bias", outputs)

    def norm(self, name, width):
        self.operation((f"{name}.weight", width), (f"{name}.bias", width))


def resnet50(m):
    def conv(name, norm, inputs, outputs, kernel, side, stride=1):
        m.product(name, inputs * side ** 2, outputs * (side // stride) ** 2, inputs * outputs * kernel ** 2,
                  2 * inputs * outputs * (kernel * side // stride) ** 2, first=name == "conv1")
        m.conv(name, inputs, outputs, kernel)
        m.norm(norm, outputs)

    conv("conv1", "bn1", 3, 64, 7, 224, 2)
    inputs, side = 64, 56
    for layer, blocks in enumerate((3, 4, 6, 3), start=1):
        width = 64 << (layer - 1)
        for block in range(blocks):
            name = f"layer{layer}.{block}"
            stride = 2 if block == 0 and layer > 1 else 1
            conv(f"{name}.conv1", f"{name}.bn1", inputs, width, 1, side)
            conv(f"{name}.conv2", f"{name}.bn2", width, width, 3, side, stride)
            conv(f"{name}.conv3", f"{name}.bn3", width, 4 * width, 1, side // stride)
            if block == 0:
                conv(f"{name}.downsample.0", f"{name}.downsample.1", inputs, 4 * width, 1, side, stride)
            inputs, side = 4 * width, side // stride
    m.product("fc", 2048, 1000, 2048 * 1000, 2 * 2048 * 1000)
    m.linear("fc", 2048, 1000)


def vgg16(m):
    inputs, index = 3, 0
    for width, convolutions in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(convolutions):
            m.conv(f"features.{index}", inputs, width, 3, bias=True)
            inputs = width
            index += 2  # the activation
        index += 1  # the pooling
    m.linear("classifier.0", 512 * 7 * 7, 4096)
    m.linear("classifier.3", 4096, 4096)
    m.linear("classifier.6", 4096, 1000)


def bert_large(m):
    hidden, feed_forward = 1024, 4096
    m.add("embeddings.word_embeddings.weight", 30522, hidden)
    m.add("embeddings.token_type_embeddings.weight", 2, hidden)
    m.add("embeddings.position_embeddings.weight", 512, hidden)
    m.norm("embeddings.LayerNorm", hidden)
    for layer in range(24):
        name = f"encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            m.linear(f"{name}.attention.self.{part}", hidden, hidden)
        m.linear(f"{name}.attention.output.dense", hidden, hidden)
        m.norm(f"{name}.attention.output.LayerNorm", hidden)
        m.linear(f"{name}.intermediate.dense", hidden, feed_forward)
        m.linear(f"{name}.output.dense", feed_forward, hidden)
        m.norm(f"{name}.output.LayerNorm", hidden)
    m.linear("pooler.dense", hidden, hidden)


def gpt2(m, width, layers):
    m.add("transformer.wte.weight", 50257, width)  # also the output layer
    m.add("transformer.wpe.weight", 1024, width)
    for layer in range(layers):
        name = f"transformer.h.{layer}"
        m.norm(f"{name}.ln_1", width)
        m.linear(f"{name}.attn.c_attn", width, 3 * width)
        m.linear(f"{name}.attn.c_proj", width, width)
        m.norm(f"{name}.ln_2", width)
        m.linear(f"{name}.mlp.c_fc", width, 4 * width)
        m.linear(f"{name}.mlp.c_proj", 4 * width, width)
    m.norm("transformer.ln_f", width)


def transformer_big(m):
    hidden, feed_forward = 1024, 4096
    root = "model/Transformer"

    def layer_norm(scope):
        m.add(f"{scope}/layer_normalization/layer_norm_scale", hidden)
        m.add(f"{scope}/layer_normalization/layer_norm_bias", hidden)

    def attention(scope, kind):
        layer_norm(scope)
        for part in ("q", "k", "v", "output_transform"):
            m.add(f"{scope}/{kind}/{part}/kernel", hidden, hidden)

    def ffn(scope):
        layer_norm(scope)
        network = f"{scope}/feed_foward_network"  # spelled so in the model's code
        m.add(f"{network}/filter_layer/kernel", hidden, feed_forward)
        m.add(f"{network}/filter_layer/bias", feed_forward)
        m.add(f"{network}/output_layer/kernel", feed_forward, hidden)
        m.add(f"{network}/output_layer/bias", hidden)

    # Of the encoder, of the decoder and of the output layer.
    m.add(f"{root}/embedding_shared_weights/embedding_and_softmax/weights", 33708, hidden)
    for stack in ("encoder_stack", "decoder_stack"):
        for layer in range(6):
            scope = f"{root}/{stack}/layer_{layer}"
            attention(f"{scope}/self_attention", "self_attention")
            if stack == "decoder_stack":
                attention(f"{scope}/encdec_attention", "attention")
            ffn(f"{scope}/ffn")
        layer_norm(f"{root}/{stack}")


def ugatit(m):
    """Reversed, this is first the step of the four discriminators, then that of the two generators."""
    ch, residual_blocks, image = 64, 4, 256

    def generator(net):
        m.conv(f"{net}.DownBlock.1", 3, ch, 7)
        m.conv(f"{net}.DownBlock.5", ch, 2 * ch, 3)
        m.conv(f"{net}.DownBlock.9", 2 * ch, 4 * ch, 3)
        for block in range(residual_blocks):
            for conv in (1, 5):
                m.conv(f"{net}.DownBlock.{12 + block}.conv_block.{conv}", 4 * ch, 4 * ch, 3)
        m.linear(f"{net}.gap_fc", 4 * ch, 1, bias=False)
        m.linear(f"{net}.gmp_fc", 4 * ch, 1, bias=False)
        m.conv(f"{net}.conv1x1", 8 * ch, 4 * ch, 1, bias=True)
        m.linear(f"{net}.FC.0", (image // 4) ** 2 * 4 * ch, 4 * ch, bias=False)
        m.linear(f"{net}.FC.2", 4 * ch, 4 * ch, bias=False)
        m.linear(f"{net}.gamma", 4 * ch, 4 * ch, bias=False)
        m.linear(f"{net}.beta", 4 * ch, 4 * ch, bias=False)
        for block in range(1, residual_blocks + 1):
            for conv in (1, 2):
                m.conv(f"{net}.UpBlock1_{block}.conv{conv}", 4 * ch, 4 * ch, 3)
                m.add(f"{net}.UpBlock1_{block}.norm{conv}.rho", 4 * ch)
        for index, width in ((2, 2 * ch), (7, ch)):
            m.conv(f"{net}.UpBlock2.{index}", 2 * width, width, 3)
            for part in ("rho", "gamma", "beta"):
                m.add(f"{net}.UpBlock2.{index + 1}.{part}", width)
        m.conv(f"{net}.UpBlock2.11", ch, 3, 7)

    def discriminator(net, layers):
        inputs, width, index = 3, ch, 1
        for _ in range(layers - 1):
            m.spectral_conv(f"{net}.model.{index}", inputs, width, 4, bias=True)
            inputs, width, index = width, 2 * width, index + 3
        m.linear(f"{net}.gap_fc", inputs, 1, bias=False, weight="weight_orig")
        m.linear(f"{net}.gmp_fc", inputs, 1, bias=False, weight="weight_orig")
        m.conv(f"{net}.conv1x1", 2 * inputs, inputs, 1, bias=True)
        m.spectral_conv(f"{net}.conv", inputs, 1, 4)

    generator("genA2B")
    generator("genB2A")
    discriminator("disGA", 7)
    discriminator("disLA", 5)
    discriminator("disGB", 7)
    discriminator("disLB", 5)


GNMT_WORDS = 25


def gnmt(m):
    """Sentences of GNMT_WORDS on both sides. A cell's recurrent weights are read in every step, the others once."""
    hidden, vocabulary, words = 1024, 32320, GNMT_WORDS

    def lstm(name, inputs, suffix=""):
        gates, both = 4 * hidden, inputs + hidden
        flops = 2 * words * gates * both
        weights = gates * (inputs + words * hidden)
        # Forward writes and reads the gates; backward reads them, and writes and reads their gradients.
        m.layer(name + suffix, (flops, words * (2 * gates + inputs + hidden), weights),
                (flops, words * (3 * gates + inputs + hidden), weights),
                (flops, words * (gates + both), gates * both))
        m.add(f"{name}.weight_ih_l0{suffix}", gates, inputs)
        m.add(f"{name}.weight_hh_l0{suffix}", gates, hidden)
        m.add(f"{name}.bias_ih_l0{suffix}", gates)
        m.add(f"{name}.bias_hh_l0{suffix}", gates)

    looked_up = (0, 2 * words * hidden, 0)
    m.layer("encoder.embedder", looked_up, None, (0, 2 * words * hidden, vocabulary * hidden))
    m.add("encoder.embedder.weight", vocabulary, hidden)  # also the decoder's
    lstm("encoder.rnn_layers.0", hidden)
    lstm("encoder.rnn_layers.0", hidden, "_reverse")
    lstm("encoder.rnn_layers.1", 2 * hidden)
    lstm("encoder.rnn_layers.2", hidden)
    lstm("encoder.rnn_layers.3", hidden)
    m.layer("decoder.embedder", looked_up)
    lstm("decoder.att_rnn.rnn", hidden)
    # Queries and keys times a matrix each; then each query with each key: a sum, tanh, a product, and the weighted sum.
    flops = 4 * words * hidden ** 2 + 6 * words ** 2 * hidden
    work = (flops, 6 * words * hidden + 2 * words ** 2 * hidden, 2 * hidden ** 2)
    m.layer("decoder.att_rnn.attn", work, work, (4 * words * hidden ** 2, 4 * words * hidden, 2 * hidden ** 2))
    m.linear("decoder.att_rnn.attn.linear_q", hidden, hidden, bias=False)
    m.linear("decoder.att_rnn.attn.linear_k", hidden, hidden, bias=False)
    m.add("decoder.att_rnn.attn.normalize_bias", hidden)
    m.add("decoder.att_rnn.attn.linear_att", hidden)
    m.add("decoder.att_rnn.attn.normalize_scalar", 1)
    for layer in range(3):
        lstm(f"decoder.rnn_layers.{layer}", 2 * hidden)
    m.product("decoder.classifier", words * hidden, words * vocabulary, hidden * vocabulary,
              2 * words * hidden * vocabulary)
    m.linear("decoder.classifier.classifier", hidden, vocabulary)


def dlrm(m, bottom, top, tables):
    """Each table is looked up once a sample; the rows go to the workers whose samples they are for."""
    width, vectors = bottom[-1], tables + 1
    rows = tables * width
    m.layer("emb_l", (0, 2 * rows, 0), None, (0, 3 * rows, 0), (rows, "interaction"))
    for name, widths in (("bot_l", bottom), ("top_l", top)):
        if name == "top_l":  # dot products of all pairs
            products = (2 * width * vectors * tables // 2, vectors * width + top[0], 0)
            m.layer("interaction", products, (2 * products[0], *products[1:]))
        for index in range(len(widths) - 1):
            inputs, outputs = widths[index], widths[index + 1]
            m.product(f"{name}.{2 * index}", inputs, outputs, inputs * outputs, 2 * inputs * outputs,
                      first=name == "bot_l" and index == 0)
            m.linear(f"{name}.{2 * index}", inputs, outputs)


def embeddings(rows, width):
    return [(f"emb_l.{table}.weight", count * width) for table, count in enumerate(rows)]


CRITEO_KAGGLE_ROWS = (1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194, 27, 14992,
                      5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572)
CRITEO_TERABYTE_ROWS = (40000000, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 40000000, 3067956, 405282, 10, 2209,
                        11938, 155, 4, 976, 14, 40000000, 40000000, 40000000, 590152, 12973, 108, 36)

TABLES = "all_to_all lists the embedding tables, which are split over the workers and never reduced: what is exchanged " \
         "in an iteration is {width} elements a sample and table in each pass, not the table."

# Samples a worker has in an iteration, as ACE (ISCA 2021) has it; of other models the layers are not written down.
BATCHES = {"resnet50": 32, "gnmt": 128, "dlrm": 512, "dlrm-kaggle": 512}
LAYERS = "; layers: what each computes, its inputs, weights and outputs moved once, all else fused"
ASSUMED = {"gnmt": f"; sentences of {GNMT_WORDS} words, recurrent weights read in every step",
           "dlrm": "; one lookup a table and sample", "dlrm-kaggle": "; one lookup a table and sample"}

# name, description, where the architecture is defined, its parameters, the tables that are not reduced
MODELS = (
    ("resnet50", "ResNet-50 for ImageNet, 25.6 M parameters", "torchvision/models/resnet.py, resnet50", resnet50, []),
    ("vgg16", "VGG-16 for ImageNet, 138 M parameters, 74 % of them in one tensor", "torchvision/models/vgg.py, vgg16",
     vgg16, []),
    ("bert-large", "BERT-large encoder with pooler, 335 M parameters",
     "Hugging Face transformers, modeling_bert.py, BertModel of bert-large-uncased", bert_large, []),
    ("gpt2", "GPT-2, 124 M parameters; the token embedding is also the output layer and comes last",
     "Hugging Face transformers, modeling_gpt2.py, GPT2LMHeadModel of gpt2", lambda m: gpt2(m, 768, 12), []),
    ("gpt2-xl", "GPT-2 XL, 1.56 G parameters; the token embedding is also the output layer and comes last",
     "Hugging Face transformers, modeling_gpt2.py, GPT2LMHeadModel of gpt2-xl", lambda m: gpt2(m, 1600, 48), []),
    ("transformer-big", "Transformer (big) for translation, 211 M parameters; one embedding serves both stacks and the "
     "output layer and comes last", "tensorflow/models official transformer (r1), TRANSFORMER_BIG_PARAMS, vocabulary "
     "33708", transformer_big, []),
    ("ugatit", "UGATIT image translation, full version at 256x256, 671 M parameters: four discriminators (one optimizer "
     "step), then two generators (another)", "znxlwm/UGATIT-pytorch, networks.py and UGATIT.py with ch 64, n_res 4, "
     "img_size 256, light False", ugatit, []),
    ("gnmt", "GNMT translation, 4 + 4 LSTM layers of 1024, 161 M parameters; one embedding serves encoder and decoder and "
     "comes last", "NVIDIA/DeepLearningExamples PyTorch/Translation/GNMT, seq2seq/models, vocabulary padded to 32320",
     gnmt, []),
    ("dlrm", "DLRM as MLPerf trains it on Criteo Terabyte: the MLPs' 2.4 M parameters are reduced. " +
     TABLES.format(width=128), "facebookresearch/dlrm, bench/run_and_time.sh; rows of the tables capped at 40 M",
     lambda m: dlrm(m, (13, 512, 256, 128), (479, 1024, 1024, 512, 256, 1), 26), embeddings(CRITEO_TERABYTE_ROWS, 128)),
    ("dlrm-kaggle", "DLRM on Criteo Kaggle: the MLPs' 0.48 M parameters are reduced. " + TABLES.format(width=16),
     "facebookresearch/dlrm, bench/dlrm_s_criteo_kaggle.sh",
     lambda m: dlrm(m, (13, 512, 256, 64, 16), (367, 512, 256, 1), 26), embeddings(CRITEO_KAGGLE_ROWS, 16)),
)


def text_of(name, description, source, model, tables):
    forward = Forward()
    model(forward)

    def entries(tensors):
        return [{"name": tensor, "elements": elements} for tensor, elements in tensors]

    document = {
        "schema": "reckon/workload",
        "schema_version": 1,
        "name": name,
        "description": description,
        "provenance": f"scripts/generate_workloads.py after {source}" +
                      (LAYERS + ASSUMED.get(name, "") if forward.layers else ""),
        "dtype": "fp32",
        "tensors": entries(reversed(forward.parameters)),
    }
    if tables:
        document["all_to_all"] = entries(tables)
    if forward.layers:
        document["batch"] = BATCHES[name]
        document["layers"] = forward.layers
    text = json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    # Lists of names stand on one line, as reckon writes them.
    return re.sub(r'\[\s+("[^"{}]*"(?:,\s+"[^"{}]*")*)\s+\]',
                  lambda names: "[" + re.sub(r",\s+", ", ", names[1]) + "]", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="compare with the files instead of writing them")
    parser.add_argument("--folder", type=pathlib.Path, help="default: profiles/workloads of this source tree",
                        default=pathlib.Path(__file__).resolve().parent.parent / "profiles" / "workloads")
    arguments = parser.parse_args()
    if not arguments.check:
        arguments.folder.mkdir(parents=True, exist_ok=True)
    status = 0
    for model in MODELS:
        path = arguments.folder / f"{model[0]}.json"
        text = text_of(*model)
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            print(f"{path}: not what this script writes; run it, or change the script", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
