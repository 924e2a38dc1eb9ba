# SPDX-License-Identifier: Apache-2.0
"""Data and models that programs would load from a network: data.py KIND FOLDER

  characters  nanoGPT's files of a text of 65 characters
  text        a tokenizer, a tiny Qwen3, and texts, preferences and prompts
  texts       the same tokenizer in model/ and texts in raw/, for litgpt
  stories     an empty checkpoint of a Llama of 15 M parameters, a tokenizer
  images      two classes of random images, train/ and val/
  classes     the same with ten classes
  llama       an empty checkpoint of LLaMA-7B and a tokenizer
  mnist       MNIST's files, of 512 and 128 random digits
  cora        the files of the Cora citation graph, random
  wikitext    texts in WikiText's three files
  c4          texts as torchtitan's test data has them
  coco        16 random images in COCO's layout, with boxes
  masks       16 random images and masks, imgs/ and masks/
  sentences   labelled sentences, a small BERT, and evaluate's accuracy metric
  pictures    two classes of random images, a small ViT, and the same metric
  yolo        16 random images in YOLO's layout, and data.yaml"""
import json
import os
import pickle
import random
import string
import sys

WORDS = ["".join(random.Random(i).choices(string.ascii_lowercase, k=4))
         for i in range(300)]


def sentence(words=40):
    return " ".join(random.choices(WORDS, k=words)) + "."


def characters(folder):
    import numpy
    letters = sorted(set(string.ascii_letters + " \n.,;:!?'-&$3"))
    for name, size in (("train", 200000), ("val", 20000)):
        numpy.random.randint(0, len(letters), size).astype(
            numpy.uint16).tofile(f"{folder}/{name}.bin")
    with open(f"{folder}/meta.pkl", "wb") as file:
        pickle.dump({"vocab_size": len(letters),
                     "itos": dict(enumerate(letters)),
                     "stoi": {c: i for i, c in enumerate(letters)}}, file)


def rows(path, count, make):
    with open(path, "w") as file:
        for _ in range(count):
            file.write(json.dumps(make()) + "\n")


def tokenizer(folder, **tokens):
    import tokenizers
    import transformers
    from tokenizers import decoders, models, pre_tokenizers, trainers
    raw = tokenizers.Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    raw.train_from_iterator(
        [sentence() for _ in range(200)], trainers.BpeTrainer(
            vocab_size=1000, special_tokens=["<end>", "<pad>", "<start>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<end>", pad_token="<pad>",
        bos_token="<start>", **tokens)
    fast.chat_template = (
        "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}<end>"
        "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}")
    fast.save_pretrained(folder)
    return fast


def text(folder):
    import transformers
    words = tokenizer(f"{folder}/model")
    transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
        vocab_size=len(words), hidden_size=256, intermediate_size=512,
        num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        head_dim=64, max_position_embeddings=1024,
        eos_token_id=words.eos_token_id, pad_token_id=words.pad_token_id,
        bos_token_id=words.bos_token_id)).save_pretrained(f"{folder}/model")
    for name, make in (
            ("texts", lambda: {"text": sentence()}),
            ("prompts", lambda: {"prompt": sentence(6)}),
            ("preferences", lambda: {"prompt": sentence(6), "chosen":
                                     sentence(9), "rejected": sentence(9)})):
        os.makedirs(f"{folder}/{name}")
        rows(f"{folder}/{name}/train.jsonl", 64, make)
        rows(f"{folder}/{name}/test.jsonl", 16, make)


def texts(folder):
    tokenizer(f"{folder}/model")
    os.makedirs(f"{folder}/raw")
    for i in range(2):
        with open(f"{folder}/raw/{i}.txt", "w") as file:
            file.writelines(sentence() + "\n" for _ in range(300))


def wikitext(folder):
    for part in ("train", "valid", "test"):
        with open(f"{folder}/{part}.txt", "w") as file:
            file.writelines(sentence() + "\n" for _ in range(200))


def c4(folder):
    rows(f"{folder}/data.json", 400, lambda: {"text": sentence(200)})


def images(folder, side=256, kinds=("cat", "dog"), each=32):
    import numpy
    from PIL import Image
    for part, count in (("train", each), ("val", each // 4)):
        for kind in kinds:
            os.makedirs(f"{folder}/{part}/{kind}")
            for i in range(count):
                pixels = numpy.random.randint(0, 255, (side, side, 3))
                Image.fromarray(pixels.astype("uint8")).save(
                    f"{folder}/{part}/{kind}/{i}.jpg")


def classes(folder):
    images(folder, kinds=WORDS[:10], each=8)


def picture(path, width, height, values=255):
    import numpy
    from PIL import Image
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shape = (height, width) if values == 2 else (height, width, 3)
    Image.fromarray(numpy.random.randint(0, values, shape).astype(
        "uint8")).save(path)


# evaluate's own loads its code from a network.
ACCURACY = """import datasets
import evaluate


class Accuracy(evaluate.Metric):
    def _info(self):
        number = datasets.Value("int32")
        return evaluate.MetricInfo(
            description="", citation="", inputs_description="",
            features=datasets.Features(
                {"predictions": number, "references": number}))

    def _compute(self, predictions, references):
        equal = sum(p == r for p, r in zip(predictions, references))
        return {"accuracy": equal / len(references)}
"""


def accuracy():
    os.makedirs("accuracy", exist_ok=True)
    with open("accuracy/accuracy.py", "w") as file:
        file.write(ACCURACY)


def sentences(folder):
    import transformers
    accuracy()
    words = tokenizer(f"{folder}/model", mask_token="<mask>")
    transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=len(words), hidden_size=256, intermediate_size=1024,
        num_hidden_layers=4, num_attention_heads=4, max_position_embeddings=512,
        pad_token_id=words.pad_token_id)).save_pretrained(f"{folder}/model")
    for part, count in (("train", 128), ("test", 32)):
        with open(f"{folder}/{part}.csv", "w") as file:
            file.write("sentence,label\n")
            file.writelines(f"{sentence(20)},{i % 3}\n" for i in range(count))
        with open(f"{folder}/{part}.txt", "w") as file:
            file.writelines(sentence(100) + "\n" for _ in range(count))


def pictures(folder):
    import transformers
    accuracy()
    images(folder)
    transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=192, intermediate_size=768, num_hidden_layers=6,
        num_attention_heads=3)).save_pretrained(f"{folder}/model")
    transformers.ViTImageProcessor().save_pretrained(f"{folder}/model")


def coco(folder):
    os.makedirs(f"{folder}/annotations")
    for part in ("train2017", "val2017"):
        images, boxes = [], []
        for i in range(8):
            name = f"{i:012}.jpg"
            picture(f"{folder}/{part}/{name}", 320, 240)
            images.append({"id": i, "file_name": name, "width": 320,
                           "height": 240})
            boxes += [{"id": len(boxes) + j, "image_id": i, "iscrowd": 0,
                       "category_id": 1 + j, "bbox": [20, 30, 90, 80],
                       "area": 7200, "segmentation":
                       [[20, 30, 110, 30, 110, 110, 20, 110]]}
                      for j in range(3)]
        with open(f"{folder}/annotations/instances_{part}.json", "w") as file:
            json.dump({"images": images, "annotations": boxes, "categories": [
                {"id": i, "name": f"thing {i}"} for i in range(1, 91)]}, file)


def masks(folder):
    for i in range(16):
        picture(f"{folder}/imgs/{i}.png", 320, 240)
        picture(f"{folder}/masks/{i}_mask.png", 320, 240, 2)


def yolo(folder):
    for part in ("train", "val"):
        os.makedirs(f"{folder}/labels/{part}")
        for i in range(8):
            picture(f"{folder}/images/{part}/{i}.jpg", 320, 240)
            with open(f"{folder}/labels/{part}/{i}.txt", "w") as file:
                file.write("0 0.5 0.5 0.3 0.4\n3 0.3 0.3 0.2 0.2\n")
    with open(f"{folder}/data.yaml", "w") as file:
        file.write(f"path: {os.path.abspath(folder)}\ntrain: images/train\n"
                   "val: images/val\nnames: " + json.dumps(
                       {i: f"thing {i}" for i in range(8)}) + "\n")


def mnist(folder):
    import numpy
    os.makedirs(f"{folder}/MNIST/raw")
    for part, count in (("train", 512), ("t10k", 128)):
        for kind, shape in (("images-idx3", (count, 28, 28)),
                            ("labels-idx1", (count,))):
            with open(f"{folder}/MNIST/raw/{part}-{kind}-ubyte", "wb") as f:
                f.write(bytes([0, 0, 8, len(shape)]))
                f.write(numpy.array(shape, ">i4").tobytes())
                f.write(numpy.random.randint(
                    0, 10, shape, dtype=numpy.uint8).tobytes())


def pieces(folder, unused=0):
    """A tokenizer of 1000 words, and some more that no text has."""
    import sentencepiece
    with open(f"{folder}/words.txt", "w") as file:
        file.writelines(sentence() + "\n" for _ in range(2000))
    sentencepiece.SentencePieceTrainer.train(
        input=f"{folder}/words.txt", model_prefix=f"{folder}/tokenizer",
        vocab_size=1000 + unused, model_type="bpe",
        user_defined_symbols=[f"<{i}>" for i in range(unused)])


def parquet(folder):
    import pyarrow
    from pyarrow import parquet as files
    os.makedirs(f"{folder}/base_data_climbmix", exist_ok=True)
    for i in range(2):
        texts = [sentence(200) for _ in range(400)]
        files.write_table(
            pyarrow.table({"text": texts}),
            f"{folder}/base_data_climbmix/shard_{i:05}.parquet",
            row_group_size=20)  # at least one for each of 16 ranks


def stories(folder):
    import torch
    pieces(folder, 31000)
    sys.path.insert(0, ".")
    from model import Transformer
    torch.save({"model": Transformer.from_name("stories15M").state_dict()},
               f"{folder}/stories15M.pt")


def llama(folder):
    import torch
    pieces(folder)
    os.makedirs(f"{folder}/7b")
    torch.save({}, f"{folder}/7b/consolidated.00.pth")
    with open(f"{folder}/7b/params.json", "w") as file:
        json.dump({"dim": 4096, "multiple_of": 256, "n_heads": 32,
                   "n_layers": 32, "norm_eps": 1e-5}, file)


def cora(folder, nodes=2708, features=1433):
    kinds = ["Theory", "Neural_Networks", "Case_Based", "Genetic_Algorithms",
             "Rule_Learning", "Probabilistic_Methods", "Reinforcement"]
    with open(f"{folder}/cora.content", "w") as file:
        for i in range(nodes):
            bits = "\t".join(random.choice("01") for _ in range(features))
            file.write(f"{i}\t{bits}\t{kinds[i % len(kinds)]}\n")
    with open(f"{folder}/cora.cites", "w") as file:
        for _ in range(5429):
            file.write(f"{random.randrange(nodes)}\t"
                       f"{random.randrange(nodes)}\n")


def main():
    random.seed(0)
    os.makedirs(sys.argv[2], exist_ok=True)
    globals()[sys.argv[1]](sys.argv[2])


if __name__ == "__main__":
    main()
