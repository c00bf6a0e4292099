"""CLEVR scenes: objects on a grey floor, their labels after CLEVR-Hans, their pictures by Blender."""
